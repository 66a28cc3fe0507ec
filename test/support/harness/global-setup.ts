import type { TestProject } from "vitest/node";
import { findNodeBinaries } from "../clusters/node/binaries.ts";
import { realNodesPossible } from "../clusters/node/possible.ts";
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
  const onProgress = (line: string): void => {
    process.stderr.write(`clusters: ${line}\n`);
  };
  // Minutes the first time: more than a test that needs real nodes may take.
  if (realNodesPossible() === undefined) await findNodeBinaries(onProgress);
  const clusters = await startClusters({
    names: ["host", "west", "east"],
    clusters: { host: { nodes: [{ count: 2 }] } },
    onProgress,
  });
  project.provide("clusters", clusters.info);
  return () => clusters.stop();
}
