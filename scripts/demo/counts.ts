import { z } from "zod";
import { table } from "../../src/cli/shared/output.ts";

const podList = z.object({
  items: z.array(z.object({ status: z.object({ phase: z.string().default("Unknown") }) })),
});

/** Numbers of pods of a cluster, by phase. */
export interface PodCounts {
  readonly cluster: string;
  readonly running: number;
  readonly completed: number;
  /** Pods in any other phase. */
  readonly others: number;
}

/** Counts the pods of `kubectl get pods -o json`. */
export function countPods(cluster: string, json: string): PodCounts {
  const phases = podList.parse(JSON.parse(json)).items.map(({ status }) => status.phase);
  const running = phases.filter((phase) => phase === "Running").length;
  const completed = phases.filter((phase) => phase === "Succeeded").length;
  return { cluster, running, completed, others: phases.length - running - completed };
}

/** Returns a table of the counts. */
export function countsTable(counts: readonly PodCounts[]): string[] {
  const rows = counts.map(({ cluster, running, completed, others }) => [
    cluster,
    ...[running, completed, others].map(String),
  ]);
  return table(["PODS IN", "RUNNING", "COMPLETED", "OTHERS"], rows).split("\n");
}
