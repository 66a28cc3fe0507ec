import { clustersOf } from "../clusters/control.ts";
import type { Cluster, Clusters, ClustersInfo } from "../clusters/types.ts";

let shared: Clusters | undefined;

/** Says which of the shared sets of clusters this file runs on. */
export function useShared(info: ClustersInfo): void {
  shared = clustersOf(info);
}

/** The host cluster of this run; whoever breaks it in a test mends it in the same test. */
export function hostCluster(): Cluster {
  return sharedClusters().get("host");
}

/** A member cluster of this run. */
export function memberCluster(name: "west" | "east"): Cluster {
  return sharedClusters().get(name);
}

function sharedClusters(): Clusters {
  if (shared === undefined) throw new Error("A file on real nodes has no shared clusters: it starts its own.");
  return shared;
}
