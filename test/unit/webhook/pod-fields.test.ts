import { describe, expect, test } from "vitest";
import { ephemeralWarnings, readPodSpec, specWarnings } from "../../../webhook/pod-fields.ts";
import { type PodParts, pod } from "../../support/builders/pod.ts";

describe("a field of a pod that is legal but unusual gets a warning", () => {
  const main = { name: "main", image: "busybox" };
  test.each<[NonNullable<PodParts["spec"]>, string[]]>([
    [{ hostNetwork: true }, ["spec.hostNetwork: uses the member node's network"]],
    [
      { nodeSelector: { "kubernetes.io/role": "agent", "liqo.io/type": "virtual-node", disk: "fast" } },
      [
        `spec.nodeSelector: kubernetes.io/role: "agent" is asked of the members' own nodes; leave it out to choose any member, or write the annotation legation.dev/clusters`,
        `spec.nodeSelector: liqo.io/type: "virtual-node" is asked of the members' own nodes; leave it out to choose any member, or write the annotation legation.dev/clusters`,
      ],
    ],
    [{ nodeSelector: { type: "virtual-kubelet", "kubernetes.io/role": "agent" } }, []],
    [{ nodeSelector: { "kubernetes.io/role": "worker" } }, []],
    [
      {
        volumes: [
          { name: "logs", hostPath: { path: "/var/log" } },
          { name: "tmp", emptyDir: {} },
        ],
      },
      ["spec.volumes: logs: hostPath uses the member node's file system"],
    ],
    [
      { containers: [{ ...main, ports: [{ containerPort: 80, hostPort: 80 }] }] },
      ["hostPort: uses the member node's ports"],
    ],
    [{ containers: [{ ...main, ports: [{ containerPort: 80, hostPort: 0 }] }] }, []],
    [
      {
        volumes: [
          { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } },
          { name: "data", persistentVolumeClaim: { claimName: "data" } },
        ],
      },
      [
        "spec.volumes: scratch: ephemeral: this cluster makes a claim for it, too; name a StorageClass with " +
          "volumeBindingMode: WaitForFirstConsumer, or there is a volume here that no pod uses",
      ],
    ],
    [
      {
        affinity: {
          podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "legation.dev/cluster" }] },
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 1, podAffinityTerm: { topologyKey: "legation.dev/cluster" } },
            ],
          },
        },
      },
      [
        "spec.affinity.podAffinity: no node of a member has legation.dev/cluster; write the annotation legation.dev/group on pods that belong in one cluster",
        "spec.affinity.podAntiAffinity: topologyKey legation.dev/cluster has no effect; write topologySpreadConstraints with that key",
      ],
    ],
    [
      {
        affinity: {
          podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] },
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "kubernetes.io/hostname" }],
          },
        },
      },
      [],
    ],
  ])("%j", (spec, warnings) => {
    const fields = readPodSpec(pod({ spec }).spec);
    if (typeof fields === "string") throw new Error(fields);
    expect([...specWarnings(fields), ...ephemeralWarnings(fields)]).toEqual(warnings);
  });
});

test.each([null, "text", [], { containers: {} }, { schedulerName: 1 }, { nodeName: {} }])(
  "a spec of other types than Kubernetes' is a problem: %j",
  (spec) => {
    expect(readPodSpec(spec)).toMatch(/^spec: /);
  },
);
