import { expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { countedPod } from "../../../../src/cli/explain/host.ts";
import { podRow } from "../../../../src/cli/ui/rows.ts";
import { StoredPods } from "../../../../src/cli/ui/stored-pod.ts";
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
])("shows the same of a pod that %s when its row alone is stored", (_, pod) => {
  const stored = new StoredPods().stored(pod);
  expect(stored.row).toEqual(podRow(pod));
  expect(stored.counted).toEqual(countedPod(pod));
  const { namespace, name, uid, resourceVersion } = pod.metadata;
  expect(stored.metadata).toEqual({ namespace, name, uid, resourceVersion });
  expect(stored).not.toHaveProperty("spec");
  expect(stored).not.toHaveProperty("status");
});

test("shares equal counts of pods", () => {
  const pods = new StoredPods();
  const of = (name: string, cpu: string) => {
    const containers = [{ name: "main", resources: { requests: { cpu } } }];
    return pods.stored(bound({ metadata: { name }, spec: { nodeName: "legation-west", containers } })).counted;
  };
  expect(of("a", "1")).toBe(of("b", "1"));
  expect(of("a", "2")).not.toEqual(of("b", "1"));
});
