import type { Cluster } from "../api/cluster.ts";
import type { Stored } from "../api/kubernetes.ts";
import { clusters } from "../api/resources.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { listAll } from "../kube/list.ts";
import { Failure } from "./failure.ts";

/** The refusal of what needs an installation where there is none. */
export function notInstalled(host: ClusterClient): Failure {
  return new Failure("refused", {
    object: host.cluster,
    problem: `Legation is not installed there: it does not serve ${clusters.plural}.${clusters.group}`,
    remedy: "run `legation install` first, or choose the host with --kubeconfig and --context",
  });
}

/** All Clusters of the host. */
export async function listClusters(host: ClusterClient, signal: AbortSignal): Promise<readonly Stored<Cluster>[]> {
  try {
    return await listAll(host, clusters, { signal });
  } catch (error) {
    throw isKubeError(error, "NotFound") ? notInstalled(host) : error;
  }
}
