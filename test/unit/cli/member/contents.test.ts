import { describe, expect, test } from "vitest";
import type { KubeObject, ObjectMeta, Stored } from "../../../../src/api/kubernetes.ts";
import { contentsOf, type FoundObject, foreignAmong, isOwnObject } from "../../../../src/cli/member/contents.ts";
import { Discovery } from "../../../../src/cli/shared/discovery.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import type { ListOptions } from "../../../../src/kube/client.ts";
import { discovering } from "../../../support/builders/discovery.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { host } from "../../copies/builders.ts";
import { everyKind } from "../../copies/every-kind.ts";

const HOST = "host-1";

function found(kind: string, name: string, metadata: Partial<ObjectMeta> = {}, group = ""): FoundObject {
  const resource = { group, plural: `${kind.toLowerCase()}s`.replace(/ys$/, "ies"), kind };
  return { resource, object: { metadata: { name, uid: `uid-of-${name}`, resourceVersion: "1", ...metadata } } };
}

/** Returns the metadata of a whole object's copy. */
function ofCopy(name: string, kind: string): Partial<ObjectMeta> {
  return { ...ofPodsCopy(name, kind), labels: { "legation.dev/host": HOST, "legation.dev/whole": "true" } };
}

/** Returns the metadata of a copy that pods use. Without a kind: as 0.1 wrote it. */
function ofPodsCopy(name: string, kind?: string): Partial<ObjectMeta> {
  const owner = JSON.stringify({ cluster: "home", kind, namespace: "team", name, uid: "u1" });
  return {
    namespace: "team",
    labels: { "legation.dev/host": HOST, "legation.dev/copy": "true" },
    annotations: { "legation.dev/owner": owner },
  };
}

/** Returns the metadata of a delegate. */
function ofDelegate(name: string): Partial<ObjectMeta> {
  return { ...ofPodsCopy(name), labels: { "legation.dev/host": HOST } };
}

/** Returns the metadata of the Secret with a delegate's tokens. */
function ofToken(pod: string): Partial<ObjectMeta> {
  return { ...ofPodsCopy(pod), labels: { "legation.dev/host": HOST, "legation.dev/home-api": "true" } };
}

describe("foreign objects in a namespace that Legation created", () => {
  test.each([
    [
      "objects that Kubernetes puts into each namespace",
      [found("ServiceAccount", "default"), found("ConfigMap", "kube-root-ca.crt")],
      [],
    ],
    ["this host's own objects", [found("Pod", "a", { labels: { "legation.dev/host": HOST } })], []],
    ["another host's objects", [found("Pod", "a", { labels: { "legation.dev/host": "host-2" } })], ["Pod a"]],
    [
      "an object without labels",
      [found("Secret", "s"), found("ServiceAccount", "robot")],
      ["Secret s", "ServiceAccount robot"],
    ],
    [
      "objects owned by this host's",
      [
        found("Pod", "a", { uid: "u", labels: { "legation.dev/host": HOST } }),
        found("PersistentVolumeClaim", "a-data", {
          ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "a", uid: "u" }],
        }),
      ],
      [],
    ],
    [
      "claims of this host: they hold data",
      [found("PersistentVolumeClaim", "data", { uid: "u", labels: { "legation.dev/host": HOST } })],
      ["PersistentVolumeClaim data"],
    ],
    [
      "what an operator made with the labels and annotations of a copy",
      [found("Secret", "a", ofCopy("a", "Gizmo.example.com")), found("Secret", "b", ofCopy("a", "Secret"))],
      ["Secret a", "Secret b"],
    ],
    [
      "what an operator made with the labels and annotations of a pod's copy",
      [found("ConfigMap", "b", ofPodsCopy("a")), found("Secret", "c", ofPodsCopy("c", "ConfigMap"))],
      ["ConfigMap b", "Secret c"],
    ],
    [
      "pods' copies: with their source's name, a name of their own, or without the annotation of their owner",
      [
        found("ConfigMap", "a", ofPodsCopy("a")),
        found("ConfigMap", "b", ofPodsCopy("b", "ConfigMap")),
        found("NetworkPolicy", "deny.legation-host-1", ofPodsCopy("deny"), "networking.k8s.io"),
        found("Secret", "c", { ...ofPodsCopy("c"), annotations: {} }),
      ],
      [],
    ],
    [
      "what was derived from a NetworkPolicy's copy",
      [
        found("NetworkPolicy", "mine", ofPodsCopy("deny"), "networking.k8s.io"),
        found(
          "NetworkPolicy",
          "deny.legation-host-1",
          { ...ofPodsCopy("deny"), namespace: "other" },
          "networking.k8s.io",
        ),
      ],
      ["NetworkPolicy mine", "NetworkPolicy deny.legation-host-1"],
    ],
    [
      "delegates and the Secrets with their tokens",
      [found("Pod", "a", ofDelegate("a")), found("Secret", "legation-api-u1", ofToken("a"))],
      [],
    ],
    [
      "what was derived from a delegate or from its Secret",
      [
        found("Pod", "a-debug", ofDelegate("a")),
        found("ConfigMap", "a", ofDelegate("a")),
        found("Secret", "other", ofToken("a")),
        found("ConfigMap", "legation-api-u1", ofToken("a")),
      ],
      ["Pod a-debug", "ConfigMap a", "Secret other", "ConfigMap legation-api-u1"],
    ],
    [
      "kinds that Legation never creates, with a copy's labels alone",
      [found("Deployment", "a", { ...ofPodsCopy("a"), annotations: {} }, "apps")],
      ["Deployment a"],
    ],
    [
      "what a controller made for its own object, with a copy's labels alone",
      [
        found("ConfigMap", "a", {
          ...ofPodsCopy("a"),
          annotations: {},
          ownerReferences: [{ apiVersion: "example.com/v1", kind: "Widget", name: "a", uid: "w" }],
        }),
      ],
      ["ConfigMap a"],
    ],
    [
      "what `legation join` made",
      [
        found(
          "Deployment",
          "agent",
          { labels: { "legation.dev/host": HOST, "app.kubernetes.io/managed-by": "legation" } },
          "apps",
        ),
      ],
      [],
    ],
    ["the copy of a whole object", [found("Secret", "a", ofCopy("a", "Secret"))], []],
    [
      "objects owned by another client's",
      [found("Pod", "b", { ownerReferences: [{ apiVersion: "v1", kind: "Job", name: "j", uid: "v" }] })],
      ["Pod b"],
    ],
  ])("%s", (_case, objects, expected) => {
    expect(foreignAmong(objects, HOST)).toEqual(expected);
  });
});

describe("listing a namespace", () => {
  test("finds the one foreign object behind many of this host's", async () => {
    const ours = (name: string): Stored<KubeObject> =>
      found("Pod", name, { labels: { "legation.dev/host": HOST } }).object;
    const all = [...Array.from({ length: 1000 }, (_, index) => ours(`web-${index}`)), found("Pod", "bare").object];
    const client = fakeClient({
      raw: discovering({ plural: "pods", kind: "Pod" }),
      list: async (_resource: unknown, { limit = all.length, continue: token = "0" }: ListOptions = {}) => {
        const first = Number(token);
        const next = first + limit;
        return {
          items: all.slice(first, next),
          resourceVersion: "1",
          size: 0,
          ...(next < all.length ? { continue: String(next) } : {}),
        };
      },
    });
    const { signal } = new AbortController();
    expect(await contentsOf(client, new Discovery(client, signal), "shop", HOST, signal)).toEqual({
      foreign: ["Pod bare"],
      unknown: [],
    });
  });
});

const kinds = (await everyKind()).filter(({ title }) => !title.startsWith("whole "));

test.each(kinds.map((each) => [each.title, each] as const))(
  "a copy of the kind %s that lost its owner annotation is still this host's",
  (_title, { kind, source }) => {
    const { metadata: made } = toCopy(kind, source, host);
    const metadata = { name: "web", uid: "copy", resourceVersion: "1", ...made, annotations: {} };
    expect(isOwnObject({ resource: kind.resource, object: { metadata } }, host.id)).toBe(true);
  },
);
