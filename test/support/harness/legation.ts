import { afterAll, beforeAll } from "vitest";
import { z } from "zod";
import { apiRequest } from "../clusters/api-request.ts";
import { type Legation, type LegationOptions, startLegation } from "../legation/start.ts";
import { cleanUpFile } from "./after-file.ts";
import { hostCluster, memberCluster } from "./clusters.ts";
import { kubectl } from "./kubectl.ts";

const clusterSchema = z.looseObject({
  metadata: z.looseObject({ labels: z.record(z.string(), z.string()).optional() }),
});

async function label(name: string, written: string): Promise<void> {
  const { text } = await apiRequest(hostCluster(), "GET", `/apis/legation.dev/v1alpha1/clusters/${name}`);
  const { labels = {} } = clusterSchema.parse(JSON.parse(text)).metadata;
  const pairs = written.split(",");
  const isSet = (pair: string): boolean => labels[pair.split("=", 1)[0] ?? ""] === pair.split("=")[1];
  if (pairs.every(isSet)) return;
  await kubectl(hostCluster(), ["label", "--overwrite", `clusters.legation.dev/${name}`, ...pairs]);
}

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
    const wanted = Object.entries(options.labels ?? labels);
    await Promise.all(wanted.map(([name, written]) => label(name, written)));
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
