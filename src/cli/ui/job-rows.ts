import { defined } from "../../api/defined.ts";
import { DELEGATE_ANNOTATION } from "../../api/keys.ts";
import type { CronJob, Job, Stored } from "../../api/kubernetes.ts";
import { listAll } from "../../kube/list.ts";
import { cronJobs, jobs } from "../../kube/resources.ts";
import { controllerOf } from "../../pods/pod-state.ts";
import { isFinished } from "../../whole/jobs/kind.ts";
import { doneText, endOf } from "../../whole/jobs/progress.ts";
import type { JobRow } from "./model.ts";
import type { Viewer } from "./viewer.ts";

/** Reads the Jobs that have finished, and all CronJobs with their last run. Rejects with KubeError. */
export async function readJobRows({ host, only, signal }: Viewer): Promise<readonly JobRow[]> {
  const options = { dropManagedFields: true, signal, ...defined({ namespace: only }) };
  const [ofJobs, ofCronJobs] = await Promise.all([listAll(host, jobs, options), listAll(host, cronJobs, options)]);
  return jobRows(ofJobs, ofCronJobs);
}

export function jobRows(ofJobs: readonly Stored<Job>[], ofCronJobs: readonly Stored<CronJob>[]): JobRow[] {
  return [
    ...ofJobs.filter(isFinished).map((job): JobRow => {
      const { metadata, spec, status } = job;
      const owner = controllerOf({ metadata });
      return {
        kind: "Job",
        namespace: metadata.namespace ?? "",
        name: metadata.name,
        asks: asks(metadata.annotations, spec?.template?.metadata?.annotations),
        ...(owner?.kind === "CronJob" ? { cronJob: owner.name } : {}),
        state: `${endOf(status)}: ${doneText(status?.succeeded ?? 0, spec?.completions)}`,
      };
    }),
    ...ofCronJobs.map(({ metadata, spec, status }): JobRow => {
      const last = status?.lastScheduleTime;
      const jobTemplate = spec?.jobTemplate;
      return {
        kind: "CronJob",
        namespace: metadata.namespace ?? "",
        name: metadata.name,
        asks: asks(
          metadata.annotations,
          jobTemplate?.metadata?.annotations,
          jobTemplate?.spec?.template?.metadata?.annotations,
        ),
        state: `${spec?.suspend === true ? "suspended, " : ""}runs at ${spec?.schedule ?? "?"}${last ? `, last ${last}` : ""}`,
      };
    }),
  ];
}

function asks(...annotations: readonly (Readonly<Record<string, string>> | undefined | null)[]): boolean {
  return annotations.some((each) => each?.[DELEGATE_ANNOTATION] === "true");
}
