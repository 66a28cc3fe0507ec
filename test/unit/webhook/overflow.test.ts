import { describe, expect, test } from "vitest";
import { mutatePod } from "../../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import { validateNamespace } from "../../../webhook/validate-namespace.ts";
import { type PodParts, pod } from "../../support/builders/pod.ts";
import { request } from "./reviews.ts";

const MARK = [{ op: "add", path: "/metadata/labels/legation.dev~1proxy", value: "overflow" }];
const labels = { app: "web" };
const overflow = { "legation.dev/mode": "overflow" };

function verdict(parts: PodParts, mode: "annotated" | "all" | "overflow" = "annotated") {
  return mutatePod(request({ object: pod(parts) }), mode);
}

describe("a pod in overflow mode", () => {
  test.each<[string, "annotated" | "all" | "overflow", PodParts]>([
    ["with the annotation", "annotated", { metadata: { labels, annotations: overflow } }],
    ["with the annotation where all pods are delegated", "all", { metadata: { labels, annotations: overflow } }],
    ["of a namespace where all are", "overflow", { metadata: { labels }, spec: { schedulerName: "volcano" } }],
  ])("%s gets the mark, and nothing else", (_, mode, parts) => {
    expect(verdict(parts, mode)).toEqual({ kind: "patched", patch: MARK, warnings: [] });
  });

  test("comes back unchanged from a second review", () => {
    const metadata = { labels: { "legation.dev/proxy": "overflow" }, annotations: overflow };
    expect(verdict({ metadata })).toEqual({ kind: "allowed", warnings: [] });
  });

  test.each<[string, PodParts, string]>([
    [
      "that is to wait for its member",
      { metadata: { annotations: { ...overflow, "legation.dev/failover": "never" } } },
      "own nodes, too",
    ],
    [
      "that tolerates everything",
      { metadata: { annotations: overflow }, spec: { tolerations: [{ operator: "Exists" }] } },
      "would choose a virtual node",
    ],
    [
      "on a virtual node",
      { metadata: { annotations: overflow }, spec: { nodeName: "legation-west" } },
      "which only Legation assigns",
    ],
  ])("%s is refused", (_, parts, words) => {
    expect(verdict(parts)).toMatchObject({ kind: "denied", message: expect.stringContaining(words) });
  });

  test.each<[string, PodParts, "overflow" | "annotated"]>([
    ["that declines", { metadata: { annotations: { "legation.dev/delegate": "false" } } }, "overflow"],
    [
      "of a DaemonSet",
      {
        metadata: {
          ownerReferences: [{ apiVersion: "apps/v1", kind: "DaemonSet", name: "d", uid: "u", controller: true }],
        },
      },
      "overflow",
    ],
    ["of a kubelet", { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } }, "overflow"],
    ["with a node", { spec: { nodeName: "node-1" } }, "overflow"],
    ["that does not ask", {}, "annotated"],
  ])("is not created %s", (_, parts, mode) => {
    expect(verdict(parts, mode).kind).toBe("allowed");
  });

  test("gets a warning for a claim; one that is always delegated for a waiting time", () => {
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    const claims = verdict({ metadata: { labels, annotations: overflow }, spec: { volumes } });
    expect(JSON.stringify(claims)).toContain("spec.volumes: data: its claim is this cluster's");
    const ephemeral = [{ name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } }];
    const stays = verdict({ metadata: { labels, annotations: overflow }, spec: { volumes: ephemeral } });
    expect(stays).toMatchObject({ warnings: [expect.stringContaining("scratch: its claim is this cluster's")] });
    const device = verdict({
      metadata: { labels, annotations: overflow },
      spec: { resourceClaims: [{ name: "gpu" }] },
    });
    expect(JSON.stringify(device)).toContain("spec.resourceClaims: gpu: its claim is this cluster's");
    const annotations = { "legation.dev/mode": "always", "legation.dev/overflow-after": "5m" };
    const always = verdict({ metadata: { annotations } }, "overflow");
    expect(always.kind).toBe("patched");
    expect(JSON.stringify(always)).toContain("has no effect without legation.dev/mode");
  });
});

test("copies a workload's mode to its template, and refuses it there as on a pod", () => {
  const template = (spec: object) => ({ metadata: {}, spec: { containers: [], ...spec } });
  const workload = (spec: object) =>
    mutateWorkload(
      request({
        kind: "Deployment",
        object: { metadata: { name: "web", annotations: overflow }, spec: { template: template(spec) } },
      }),
      "annotated",
    );
  expect(workload({})).toMatchObject({ kind: "patched" });
  expect(workload({ tolerations: [{ operator: "Exists" }] })).toMatchObject({
    kind: "denied",
    message: expect.stringContaining("spec.template: spec.tolerations"),
  });
});

describe("a workload of a namespace where every pod overflows", () => {
  const workload = (annotations: object, spec: object = {}) =>
    mutateWorkload(
      request({
        kind: "Deployment",
        object: {
          metadata: { name: "web", annotations },
          spec: { template: { metadata: {}, spec: { containers: [], ...spec } } },
        },
      }),
      "overflow",
    );

  test.each<[string, object, object, string]>([
    ["is to wait for its member", { "legation.dev/failover": "never" }, {}, "own nodes, too"],
    [
      "tolerates everything",
      { "legation.dev/group": "a" },
      { tolerations: [{ operator: "Exists" }] },
      "spec.template: spec.tolerations",
    ],
  ])("is refused if its pods would be: it %s", (_, annotations, spec, words) => {
    expect(workload(annotations, spec)).toMatchObject({ kind: "denied", message: expect.stringContaining(words) });
  });

  test.each<[string, object]>([
    ["is delegated from the start", { "legation.dev/mode": "always" }],
    ["declines", { "legation.dev/delegate": "false" }],
  ])("is admitted if it %s", (_, annotations) => {
    const failover = { ...annotations, "legation.dev/failover": "never" };
    expect(workload(failover, { tolerations: [{ operator: "Exists" }] })).toMatchObject({ kind: "patched" });
  });

  test("gets warnings for settings without effect", () => {
    const { warnings } = workload({ "legation.dev/scheduling-preferences": "{}" }) as { warnings?: string[] };
    expect(warnings).toEqual([expect.stringContaining("has no effect in mode")]);
  });
});

test("takes the mode of a namespace from its label, the waiting time from its annotation", () => {
  const namespace = (annotations: object) =>
    validateNamespace(request({ kind: "Namespace", object: { metadata: { name: "team", annotations } } }));
  expect(namespace({ "legation.dev/overflow-after": "5m" }).kind).toBe("allowed");
  expect(namespace(overflow)).toMatchObject({
    kind: "denied",
    message: expect.stringContaining('the label legation.dev/delegation: "overflow"'),
  });
});
