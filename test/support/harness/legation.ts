import { afterAll, beforeAll } from "vitest";
import { type Legation, type LegationOptions, startLegation } from "../legation/start.ts";
import { cleanUpFile } from "./after-file.ts";
import { hostCluster, memberCluster } from "./clusters.ts";
import { kubectl } from "./kubectl.ts";

/**
 * Runs Legation with both members for all tests of a file. The installation and the joined members stay for the files
 * after it, which find them and start processes of their own.
 */
export function useLegation(options: Partial<LegationOptions> = {}): () => Legation {
  let running: Legation | undefined;
  beforeAll(async () => {
    const labels = { west: "region=eu", east: "region=us" };
    running = await startLegation({
      host: hostCluster(),
      members: { west: memberCluster("west"), east: memberCluster("east") },
      labels,
      restart: true,
      ...options,
    });
    // One that had joined already may have other labels.
    for (const [name, written] of Object.entries(options.labels ?? labels)) {
      await kubectl(hostCluster(), ["label", "--overwrite", `clusters.legation.dev/${name}`, ...written.split(",")]);
    }
  });
  afterAll(async () => {
    // While proxies can still be released.
    await cleanUpFile();
    await running?.stop();
  });
  return () => {
    if (running === undefined) throw new Error("Legation runs from the file's beforeAll on: call this in a test.");
    return running;
  };
}
