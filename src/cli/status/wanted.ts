import { z } from "zod";
import { readFields, type WrittenObject } from "../plan/documents.ts";
import { podsOf, type WorkloadKind } from "../plan/workloads.ts";

const jobState = z.looseObject({
  metadata: z.looseObject({ creationTimestamp: z.string().nullish() }),
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
      lastSuccessfulTime: z.string().exactOptional(),
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

/** Up to when a CronJob is known to have begun its runs; epoch ms, 0: never. `runs` are its Jobs that are under way. */
export function lastRunOf(cronJob: WrittenObject, runs: readonly WrittenObject[]): number {
  const { lastScheduleTime, lastSuccessfulTime } = readFields(cronJobState, cronJob).status ?? {};
  const made = runs.map((run) => readFields(jobState, run).metadata.creationTimestamp);
  const times = [lastScheduleTime, lastSuccessfulTime, ...made].map((time) => Date.parse(time ?? ""));
  return Math.max(0, ...times.filter((time) => !Number.isNaN(time)));
}

/** Suspended, or ended: it has no pods to wait for. */
function isResting(job: WrittenObject): boolean {
  const { spec, status } = readFields(jobState, job);
  const isEnding = status?.conditions?.some((one) => ENDING.has(one.type) && one.status === "True");
  return spec.suspend === true || isEnding === true;
}
