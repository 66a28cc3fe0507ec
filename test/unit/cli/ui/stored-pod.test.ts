import { expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { memberRows, podRow } from "../../../../src/cli/ui/rows.ts";
import { withoutUnread } from "../../../../src/cli/ui/stored-pod.ts";
import { containerStatus, endedStatus, proxyPod, runningStatus } from "../../../support/builders/pod.ts";

const annotations = {
  "legation.dev/cluster": "west",
  "legation.dev/delegate-uid": "uid-2",
  "legation.dev/member-node": "node-1",
  note: "x".repeat(1_000),
};
const ownerReferences = [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-5d4f", uid: "r", controller: true }];
const bound = (parts: Parameters<typeof proxyPod>[0]): Stored<Pod> =>
  proxyPod({
    metadata: { annotations, ownerReferences, labels: { "pod-template-hash": "5d4f", app: "web" } },
    spec: {
      nodeName: "legation-west",
      volumes: [{ name: "v", emptyDir: {} }],
      initContainers: [{ name: "sidecar", restartPolicy: "Always", resources: { requests: { cpu: "200m" } } }],
      containers: [
        { name: "main", env: [{ name: "A", value: "b" }], resources: { requests: { cpu: "1", memory: "1Gi" } } },
      ],
    },
    ...parts,
  });
const condition = (type: string, message: string) => ({ type, status: "False", reason: "Unschedulable", message });

test.each<[string, Stored<Pod>]>([
  ["runs", bound({ status: runningStatus() })],
  ["has failed", bound({ status: endedStatus(1) })],
  [
    "cannot start",
    bound({
      status: {
        containerStatuses: [containerStatus({ state: { waiting: { reason: "ErrImagePull", message: "no" } } })],
      },
    }),
  ],
  [
    "is bound without a delegate",
    bound({ metadata: {}, status: { conditions: [condition("PodReadyToStartContainers", "lost")] } }),
  ],
  ["waits for a member", proxyPod({ status: { conditions: [condition("PodScheduled", "west: full")] } })],
  ["is gated", proxyPod({ spec: { schedulingGates: [{ name: "wait" }] } })],
])("shows the same of a pod that %s when it is stored, in less", (_, pod) => {
  const stored = withoutUnread(structuredClone(pod));
  expect(podRow(stored)).toEqual(podRow(pod));
  const cluster = {
    metadata: { name: "west", uid: "c", resourceVersion: "1" },
    spec: { credentialsSecret: { name: "s" } },
    status: { allocatable: { cpu: "4", memory: "8Gi", pods: "9" } },
  };
  expect(memberRows([cluster], [], [stored])).toEqual(memberRows([cluster], [], [pod]));
  expect(JSON.stringify(stored).length).toBeLessThan(JSON.stringify(pod).length);
});
