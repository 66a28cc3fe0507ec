import { afterAll, beforeAll, beforeEach } from "vitest";
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

// Lines of one JSON object; 40 and more are warnings.
const WARNING = /^\{"level":[456]0,"time":"([^"]+)"/;
const MOST_WARNINGS = 20;

/** Writes to stderr what a process of Legation has warned of since then. */
function tellWarnings(what: string, log: string, since: string): void {
  const lines = log.split("\n").filter((line) => (WARNING.exec(line)?.[1] ?? "") >= since);
  for (const line of lines.slice(-MOST_WARNINGS)) process.stderr.write(`${what}: ${line}\n`);
}

/**
 * Runs Legation with both members for a file's tests. Installation and members stay for later files, which start
 * processes of their own.
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
    // A member that joined before may have other labels.
    const wanted = Object.entries(options.labels ?? labels);
    await Promise.all(wanted.map(([name, written]) => label(name, written)));
  });
  beforeEach(({ onTestFailed }) => {
    const since = new Date().toISOString();
    onTestFailed(() => {
      if (running === undefined) return;
      tellWarnings("controller", running.controller.log(), since);
      tellWarnings("webhook", running.webhook.log(), since);
    });
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
