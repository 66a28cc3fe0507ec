import type { Cluster } from "../../api/cluster.ts";
import { RELEASED_CONDITION } from "../../api/cluster-status.ts";
import {
  CLUSTER_FINALIZER,
  NODE_LEASE_NAMESPACE,
  providerIdOf,
  VIRTUAL_NODE_LABEL,
  virtualNodeName,
} from "../../api/keys.ts";
import type { KubeNode, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { leases, nodes } from "../../kube/resources.ts";
import { dropFinalizer, remove } from "../shared/removal.ts";
import { until, withoutRepeats } from "../shared/wait.ts";

export interface ClusterRemoval {
  /** How long the controller may take to remove the virtual node and its finalizer. */
  readonly patienceMs: number;
  /** Removes the controller's finalizer after that time. */
  readonly force: boolean;
  /** Receives what the controller waits for, once for each reason. */
  readonly onKept: (why: string) => void;
  readonly signal: AbortSignal;
}

/** Deletes a Cluster and waits until it and its virtual node are gone. Returns false if the controller keeps the Cluster. */
export async function removeCluster(
  host: ClusterClient,
  cluster: Stored<Cluster>,
  { patienceMs, force, onKept, signal }: ClusterRemoval,
): Promise<boolean> {
  const { name, uid } = cluster.metadata;
  await remove(host, clusters, { name }, { uid, signal });
  const tell = withoutRepeats(onKept);
  const isGone = await until(
    async () => {
      const found = await host.find(clusters, { name }, { signal });
      if (found === undefined || found.metadata.uid !== uid) return true;
      const why = found.status?.conditions?.find(({ type }) => type === RELEASED_CONDITION)?.message;
      if (why !== undefined) tell(why);
      return false;
    },
    { timeoutMs: patienceMs, signal },
  );
  if (!isGone) {
    if (!force) return false;
    await dropFinalizer(host, clusters, cluster, CLUSTER_FINALIZER, signal);
  }
  if ((await successor(host, { name, uid }, signal)) === undefined) await removeVirtualNode(host, name, signal);
  return true;
}

export async function successor(
  host: ClusterClient,
  { name, uid }: { readonly name: string; readonly uid: string | undefined },
  signal: AbortSignal,
): Promise<Stored<Cluster> | undefined> {
  const found = await host.find(clusters, { name }, { signal });
  return found?.metadata.uid === uid ? undefined : found;
}

/** Reports whether a node is the Cluster's virtual node, by label or by `spec.providerID`. */
export function isVirtualNodeOf({ metadata, spec }: Stored<KubeNode>, cluster: string): boolean {
  return metadata.labels?.[VIRTUAL_NODE_LABEL] === cluster || spec?.providerID === providerIdOf(cluster);
}

/** Removes the virtual node and its lease. Leaves a node of that name alone that is not Legation's. */
export async function removeVirtualNode(host: ClusterClient, cluster: string, signal: AbortSignal): Promise<void> {
  const name = virtualNodeName(cluster);
  const node = await host.find(nodes, { name }, { signal });
  if (node !== undefined && !isVirtualNodeOf(node, cluster)) return;
  if (node !== undefined) await remove(host, nodes, { name }, { uid: node.metadata.uid, signal });
  await remove(host, leases, { namespace: NODE_LEASE_NAMESPACE, name }, { signal });
}
