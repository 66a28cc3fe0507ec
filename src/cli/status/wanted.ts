import { z } from "zod";
import { readFields, type WrittenObject } from "../plan/documents.ts";
import { podsOf, type WorkloadKind } from "../plan/workloads.ts";

const jobState = z.looseObject({
  spec: z.looseObject({ suspend: z.boolean().exactOptional() }),
  status: z
    .looseObject({
      conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).exactOptional(),
    })
    .exactOptional(),
});
const cronJobState = z.looseObject({
  status: z
    .looseObject({
      active: z.array(z.looseObject({ name: z.string() })).exactOptional(),
      lastScheduleTime: z.string().exactOptional(),
    })
    .exactOptional(),
});

// With one of these a Job's controller makes no more pods (k8s.io/api/batch/v1).
const ENDING: ReadonlySet<string> = new Set(["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"]);

/** How many pods a workload is to have now; `runs` are a CronJob's Jobs that are under way. */
export function podsWanted(object: WrittenObject, kind: WorkloadKind, runs: readonly WrittenObject[]): number {
  if (kind === "CronJob") return runs.reduce((wanted, run) => wanted + podsWanted(run, "Job", []), 0);
  if (kind === "Job" && isResting(object)) return 0;
  return podsOf(object, kind).replicas;
}

/** Names of a CronJob's Jobs that are under way. */
export function runsOf(cronJob: WrittenObject): string[] {
  return readFields(cronJobState, cronJob).status?.active?.map(({ name }) => name) ?? [];
}

/** When a CronJob last began a run; epoch ms. */
export function lastRunOf(cronJob: WrittenObject): number | undefined {
  const at = Date.parse(readFields(cronJobState, cronJob).status?.lastScheduleTime ?? "");
  return Number.isNaN(at) ? undefined : at;
}

/** Suspended, or ended: it has no pods to wait for. */
function isResting(job: WrittenObject): boolean {
  const { spec, status } = readFields(jobState, job);
  const isEnding = status?.conditions?.some((one) => ENDING.has(one.type) && one.status === "True");
  return spec.suspend === true || isEnding === true;
}
