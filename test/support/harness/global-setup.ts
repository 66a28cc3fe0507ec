import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { findBinaries } from "../clusters/binaries.ts";
import { findNodeBinaries } from "../clusters/node/binaries.ts";
import { realNodesPossible } from "../clusters/node/possible.ts";
import { startClusters } from "../clusters/start.ts";
import type { Clusters, ClustersInfo } from "../clusters/types.ts";
import { ensureEngines } from "../engines/python.ts";
import { isOnRealNodes } from "./place-of-file.ts";

declare module "vitest" {
  /** What every integration test can inject. */
  export interface ProvidedContext {
    /** The sets of clusters that files share, each for one file at a time. */
    sets: readonly ClustersInfo[];
    /** Folder with the locks of the files that run. */
    turns: string;
    /** The kubectl that fits the clusters. */
    kubectl: string;
  }
}

/** How many files can use shared clusters at the same time. */
const SETS = 2;

/**
 * Starts what integration tests share: sets of a host, whose own two nodes must never get a delegated pod, and two
 * members; fewer where few files run.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const onProgress = (line: string): void => {
    process.stderr.write(`clusters: ${line}\n`);
  };
  const { kubectl } = await findBinaries(onProgress);
  // Minutes the first time: more than a test that needs real nodes may take.
  if (realNodesPossible() === undefined) await findNodeBinaries(onProgress);
  const files = project.vitest.state.getPaths().filter((path) => path.includes("/test/integration/"));
  if (files.some((path) => path.includes("/engine-"))) await ensureEngines(onProgress);
  const sharing = files.filter((path) => !isOnRealNodes(path));
  const sets: Clusters[] = [];
  for (let number = 0; number < Math.min(SETS, sharing.length); number++) {
    const started = await startClusters({
      names: ["host", "west", "east"],
      clusters: { host: { nodes: [{ count: 2 }] } },
      onProgress,
    });
    sets.push(started);
  }
  const turns = mkdtempSync(join(tmpdir(), "legation-turns-"));
  project.provide(
    "sets",
    sets.map(({ info }) => info),
  );
  project.provide("turns", turns);
  project.provide("kubectl", kubectl);
  return async () => {
    await Promise.all(sets.map((set) => set.stop()));
    rmSync(turns, { recursive: true, force: true });
  };
}
