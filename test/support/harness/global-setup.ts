import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { findBinaries } from "../clusters/binaries.ts";
import { reserve } from "../clusters/lock.ts";
import { findNodeBinaries } from "../clusters/node/binaries.ts";
import { realNodesPossible } from "../clusters/node/possible.ts";
import { startClusters } from "../clusters/start.ts";
import type { Clusters, ClustersInfo } from "../clusters/types.ts";
import { ensureAllPrograms, ensurePrograms } from "../engines/programs.ts";
import { ensureEnginesOf } from "../engines/python.ts";
import { bundleSources } from "../legation/bundle.ts";
import { MAIN_VARIABLE } from "../legation/cli.ts";
import { RIGHTS_FOLDER } from "../rights/used.ts";
import { expectFiles } from "./files-to-come.ts";
import { needsUnused, placeOf, type SharedPlace, TURNS, turnFile, UNUSED_TURN } from "./place-of-file.ts";
import { SETS } from "./sets.ts";

declare module "vitest" {
  /** The values that integration tests can inject. */
  export interface ProvidedContext {
    /** The sets of clusters that files share, each for one file at a time. */
    sets: Readonly<Record<SharedPlace, readonly ClustersInfo[]>>;
    /** Folder with the locks of the files that run, and the names of those to come. */
    turns: string;
    /** The kubectl that fits the clusters. */
    kubectl: string;
    /** Once integration tests have been set up: what their clusters tell of the use of rights. */
    rights: RightsRun | undefined;
  }
}

/** Integration tests by which rights are judged. */
export interface RightsRun {
  /** Rights that were used in clusters that are gone. */
  readonly folder: string;
  /** Clusters that may still be there. */
  readonly sets: readonly ClustersInfo[];
  /** Returns why an unused right may still be used. Undefined after a whole run. */
  readonly unseen: string | undefined;
}

/** Starts what integration tests share: sets of clusters, fewer where few files run. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const onProgress = (line: string): void => {
    process.stderr.write(`clusters: ${line}\n`);
  };
  const { kubectl } = await findBinaries(onProgress);
  const obstacle = realNodesPossible();
  const realPossible = obstacle === undefined;
  // Minutes the first time: more than a test that needs real nodes may take.
  if (realPossible) await findNodeBinaries(onProgress);
  const files = project.vitest.state.getPaths().filter((path) => path.includes("/test/integration/"));
  await ensureEnginesOf(files, onProgress);
  const engines = files.filter((path) => path.includes("/engine-"));
  if (engines.length > 0) await ensureAllPrograms(onProgress);
  if (engines.some((path) => path.includes("tekton"))) await ensurePrograms("tekton", onProgress);
  const started: Clusters[] = [];
  const turns = mkdtempSync(join(tmpdir(), "legation-turns-"));
  const startSets = async (place: SharedPlace): Promise<ClustersInfo[]> => {
    if (place === "real" && !realPossible) return [];
    const using = files.filter((path) => placeOf(path) === place);
    // Watch mode runs the tests again.
    if (!project.vitest.config.watch) expectFiles(turns, place, using);
    const sets: ClustersInfo[] = [];
    for (const _ of TURNS[place].slice(0, using.length)) {
      const set = await startClusters({ ...SETS[place], onProgress });
      started.push(set);
      sets.push(set.info);
    }
    return sets;
  };
  if (files.some(needsUnused)) reserve(turnFile(turns, UNUSED_TURN));
  // Tells all processes of the tests.
  const rights = join(turns, "rights");
  process.env[RIGHTS_FOLDER] = rights;
  // Started hundreds of times.
  process.env[MAIN_VARIABLE] = await bundleSources(join(turns, "bundle"));
  const [simulated, real, pristine] = await Promise.all([
    startSets("simulated"),
    startSets("real"),
    startSets("pristine"),
  ]);
  project.provide("sets", { simulated, real, pristine });
  project.provide("turns", turns);
  project.provide("kubectl", kubectl);
  const all = await project.globTestFiles();
  const partial = files.length < all.testFiles.length ? "only some of the integration tests run" : undefined;
  project.vitest.provide("rights", {
    folder: rights,
    sets: [...simulated, ...real, ...pristine],
    unseen: obstacle === undefined ? partial : `no real node can run here: ${obstacle}`,
  });
  return async () => {
    // The test of rights has read the shared clusters' logs by now.
    delete process.env[RIGHTS_FOLDER];
    delete process.env[MAIN_VARIABLE];
    await Promise.all(started.map((set) => set.stop()));
    rmSync(turns, { recursive: true, force: true });
  };
}
