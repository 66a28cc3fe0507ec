import { describe, expect, test } from "vitest";
import type { KubeObject, ObjectMeta, Stored } from "../../../../src/api/kubernetes.ts";
import { foreignAmong } from "../../../../src/cli/member/contents.ts";

const HOST = "host-1";

function found(
  kind: string,
  name: string,
  metadata: Partial<ObjectMeta> = {},
): { kind: string; object: Stored<KubeObject> } {
  return { kind, object: { metadata: { name, uid: `uid-of-${name}`, resourceVersion: "1", ...metadata } } };
}

describe("what is foreign in a namespace that Legation made", () => {
  test.each([
    [
      "what Kubernetes puts into each",
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
      "what belongs to this host's objects",
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
      "what belongs to somebody else's",
      [found("Pod", "b", { ownerReferences: [{ apiVersion: "v1", kind: "Job", name: "j", uid: "v" }] })],
      ["Pod b"],
    ],
  ])("%s", (_case, objects, expected) => {
    expect(foreignAmong(objects, HOST)).toEqual(expected);
  });
});
