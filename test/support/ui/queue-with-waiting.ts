import { installKueueDefinitions } from "../engines/kueue-definitions.ts";
import { clusterQueue, flavor, localQueue } from "../engines/kueue-objects.ts";
import { applyAll, kubectl } from "../harness/kubectl.ts";
import type { Place } from "../harness/real-nodes.ts";

/** Makes a queue for the member west, without Kueue, in which a Job waits. */
export async function queueWithWaiting({ cluster, namespace }: Place): Promise<void> {
  await installKueueDefinitions(cluster);
  const queue = clusterQueue("team", { west: { cpu: "128" } });
  const containers = [{ name: "main", image: "main:1", resources: { requests: { cpu: "4" } } }];
  const apiVersion = "kueue.x-k8s.io/v1beta2";
  // The garbage collector deletes objects whose owner never was.
  const template = { spec: { containers, restartPolicy: "Never" } };
  await applyAll(cluster, [
    { apiVersion: "batch/v1", kind: "Job", metadata: { namespace, name: "sweep" }, spec: { suspend: true, template } },
  ]);
  const uid = await kubectl(cluster, ["-n", namespace, "get", "job", "sweep", "-o", "jsonpath={.metadata.uid}"]);
  await applyAll(cluster, [
    flavor("west", { "legation.dev/cluster": "west" }),
    queue,
    localQueue(namespace, "team"),
    {
      ...{ apiVersion, kind: "Workload" },
      metadata: {
        ...{ namespace, name: "job-sweep" },
        ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name: "sweep", uid, controller: true }],
      },
      spec: { queueName: "team", podSets: [{ name: "main", count: 1, template: { spec: { containers } } }] },
    },
  ]);
  const lastTransitionTime = new Date().toISOString();
  const message = "insufficient quota";
  const waits = { type: "QuotaReserved", status: "False", reason: "Pending", message, lastTransitionTime };
  const used = { name: "west", resources: [{ name: "cpu", total: "126" }] };
  const statuses = [
    ["clusterqueues.kueue.x-k8s.io/team", { pendingWorkloads: 1, flavorsReservation: [used] }],
    ["workloads.kueue.x-k8s.io/job-sweep", { conditions: [waits] }],
  ] as const;
  for (const [name, status] of statuses) {
    const patch = ["--subresource=status", "--type=merge", "-p", JSON.stringify({ status })];
    await kubectl(cluster, ["-n", namespace, "patch", name, ...patch]);
  }
}
