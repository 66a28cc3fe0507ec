import { describe, expect, test } from "vitest";
import type { PodSpec } from "../../../src/api/kubernetes.ts";
import { droppable, droppedFields } from "../../../src/pods/dropped-fields.ts";

type Parts = Readonly<Record<string, unknown>>;

function spec({ main = {}, ...parts }: Parts & { readonly main?: Parts }): PodSpec {
  return { containers: [{ name: "main", image: "main:1", ...main }], ...parts } as PodSpec;
}

describe("a droppable field", () => {
  test.each<[string, Parts, Parts]>([
    ["spec.hostUsers", { hostUsers: false }, {}],
    ["spec.resources", { resources: { limits: { cpu: "1" } } }, {}],
    [
      "spec.initContainers[proxy].restartPolicy",
      { restartPolicy: "Always", initContainers: [{ name: "proxy", restartPolicy: "Always", resources: {} }] },
      { initContainers: [{ name: "proxy" }] },
    ],
    ["spec.containers[main].restartPolicy", { restartPolicy: "Always", main: { restartPolicy: "Never" } }, {}],
    ["spec.hostnameOverride", { hostnameOverride: "web" }, {}],
    ["spec.schedulingGroup", { schedulingGroup: { podGroupName: "gang" } }, {}],
    ["spec.workloadRef", { workloadRef: { name: "training", podGroup: "workers" } }, {}],
    [
      "spec.containers[main].securityContext.procMount",
      { main: { securityContext: { procMount: "Unmasked" } } },
      { main: { securityContext: { procMount: "Default" } } },
    ],
    ["spec.volumes[data].image", { volumes: [{ name: "data", image: { reference: "data:1" } }] }, { volumes: [] }],
    ["spec.resourceClaims", { resourceClaims: [{ name: "gpu" }] }, {}],
    ["spec.containers[main].resources.claims", { main: { resources: { claims: [{ name: "gpu" }] } } }, {}],
    ["spec.containers[main].restartPolicyRules", { main: { restartPolicyRules: [{ action: "Restart" }] } }, {}],
    [
      "spec.containers[main].lifecycle.preStop.sleep",
      { main: { lifecycle: { preStop: { sleep: { seconds: 1 } } } } },
      {},
    ],
    [
      "spec.volumes[all].projected.sources[1].clusterTrustBundle",
      { volumes: [{ name: "all", projected: { sources: [{ secret: {} }, { clusterTrustBundle: { path: "ca" } }] } }] },
      { volumes: [{ name: "all", projected: { sources: [{ secret: {} }, {}] } }] },
    ],
    [
      "spec.containers[main].volumeMounts[data].recursiveReadOnly",
      { main: { volumeMounts: [{ name: "data", mountPath: "/data", recursiveReadOnly: "Enabled" }] } },
      { main: { volumeMounts: [{ name: "data", mountPath: "/data" }] } },
    ],
  ])("is %s", (path, sent, stored) => {
    expect(droppedFields(spec(sent), spec(stored))).toEqual([path]);
    expect(droppedFields(spec(sent), spec(sent))).toEqual([]);
  });

  test.each<[string, Parts]>([
    ["what every pod is without it", { hostUsers: true, main: { volumeMounts: [{ recursiveReadOnly: "Disabled" }] } }],
    ["a mount of /proc as of every container", { main: { securityContext: { procMount: "Default" } } }],
    ["empty lists", { resourceClaims: [], main: { resources: { claims: [] } } }],
    [
      "images of containers, and what only looks like one of a volume",
      { volumes: [{ name: "a", csi: { image: "b" } }] },
    ],
    ["what a member's admission may take out", { nodeSelector: { disk: "ssd" }, priorityClassName: "high" }],
  ])("is not %s", (_, sent) => {
    expect(droppable(spec(sent))).toEqual([]);
  });
});
