import type { ClusterClient } from "../../kube/client.ts";
import { pods } from "../../kube/resources.ts";
import { hiddenLine } from "../shared/hidden.ts";
import { listClusters, listVirtualNodes, listWhereAllowed, OF_PROXIES, readable } from "../shared/reading.ts";
import { areSummed, type HostStatus, hiddenBeside, hostStatus } from "./members.ts";
import { type QueueReader, type QueueStatus, queueStatuses } from "./queues.ts";

// A terminal shows the workloads of each queue that wait longest.
const SHOWN = 3;

/** The status of all members, and of Kueue's queues. */
export interface HostOverview extends HostStatus {
  /** Undefined if the host does not serve Kueue. */
  readonly queues?: readonly QueueStatus[] | undefined;
}

/**
 * Reads the status of all members and of Kueue's queues, with the pods and workloads of `namespace` where the account may not list
 * all. Rejects with `Failure` where Legation is not installed, and with KubeError if the account may not read Clusters.
 */
export async function readHostOverview(
  host: ClusterClient,
  { namespace, queues: queueReader }: { readonly namespace: string; readonly queues: QueueReader },
  signal: AbortSignal,
): Promise<HostOverview> {
  const reading = listClusters(host, signal);
  const [clusters, virtualNodes, { found: proxies, isAll }, queues] = await Promise.all([
    reading,
    readable(listVirtualNodes(host, signal)),
    reading.then((found) => {
      const bound = areSummed(found) ? { fieldSelector: "spec.nodeName=" } : {};
      return listWhereAllowed(host, pods, [namespace], {
        labelSelector: OF_PROXIES,
        ...bound,
        dropManagedFields: true,
        signal,
      });
    }),
    queueReader.read(signal),
  ]);
  const members = { clusters, nodes: virtualNodes ?? [] };
  return {
    ...hostStatus({ ...members, proxies }),
    queues: queues && queueStatuses(queues, members, SHOWN),
    hidden: hiddenLine([...hiddenBeside({ isNode: virtualNodes !== undefined, isAll }), ...(queues?.hidden ?? [])]),
  };
}
