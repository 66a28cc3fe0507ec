import { readFileSync } from "node:fs";

/** True for a test file whose pods run on real nodes, and false for one on the clusters with simulated ones. */
export function isOnRealNodes(path: string): boolean {
  return path.includes("/test/integration/real-nodes/");
}

/** True for a file on real nodes that starts clusters of its own, for want of something in the shared ones. */
export function hasOwnClusters(path: string): boolean {
  return path.includes("/test/integration/real-nodes/own-clusters/");
}

/** True for a file that takes Legation out of the shared clusters, which whoever comes after it has to install again. */
export function needsPristine(path: string): boolean {
  return readFileSync(path, "utf8").includes("/harness/pristine.ts");
}
