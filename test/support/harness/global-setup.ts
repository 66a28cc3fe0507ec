import type { TestProject } from "vitest/node";
import { startClusters } from "../clusters/start.ts";
import type { ClustersInfo } from "../clusters/types.ts";

declare module "vitest" {
  /** What every integration test can inject. */
  export interface ProvidedContext {
    clusters: ClustersInfo;
  }
}

/**
 * Starts the clusters that all integration tests share: a host whose own two nodes must never get a delegated pod, and
 * two members.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const clusters = await startClusters({
    names: ["host", "west", "east"],
    clusters: { host: { nodes: [{ count: 2 }] } },
    onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
  });
  project.provide("clusters", clusters.info);
  return () => clusters.stop();
}
