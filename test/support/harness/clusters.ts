import { clustersOf } from "../clusters/control.ts";
import type { Cluster, Clusters, ClustersInfo } from "../clusters/types.ts";

let shared: Clusters | undefined;

/** Says which of the shared sets of clusters this file runs on, if any. */
export function useShared(info: ClustersInfo | undefined): void {
  shared = info === undefined ? undefined : clustersOf(info);
}

/** The host cluster of this run. A test that breaks it also repairs it. */
export function hostCluster(): Cluster {
  return sharedClusters().get("host");
}

/** A member cluster of this run. On real nodes there is but `west`. */
export function memberCluster(name: "west" | "east"): Cluster {
  return sharedClusters().get(name);
}

/** A cluster beside host and member for files on real nodes, with such a node itself and without Legation. */
export function plainCluster(): Cluster {
  return sharedClusters().get("plain");
}

function sharedClusters(): Clusters {
  if (shared === undefined) throw new Error("A file with clusters of its own has no shared ones.");
  return shared;
}
