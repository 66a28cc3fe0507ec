import type { Job, Stored } from "../../api/kubernetes.ts";
import { membersOfJob, sharesOf } from "../../copies/job-shares.ts";
import { isFinished, WHOLE_SELECTOR } from "../../copies/jobs.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { jobs } from "../../kube/resources.ts";
import { namespacedName } from "../shared/reading.ts";
import type { HostContext } from "../shared/session.ts";
import { until, type WaitOptions } from "../shared/wait.ts";

// Each poll lists the whole Jobs of all members.
const POLL_MS = 2000;

/** Lists the whole Jobs that the member has, or has a share of, and that have not finished there. */
export async function unfinishedJobs(host: ClusterClient, member: string, signal: AbortSignal): Promise<Stored<Job>[]> {
  const whole = await listAll(host, jobs, { labelSelector: WHOLE_SELECTOR, signal });
  return whole.filter((job) => membersOfJob(job).includes(member) && !isFinished(job) && !hasFinishedIn(job, member));
}

function hasFinishedIn(job: Job, member: string): boolean {
  return sharesOf(job)?.some((share) => share.member === member && isFinished(share)) ?? false;
}

/** Waits until the member's whole Jobs have finished. Resolves to those that are left on timeout. */
export async function waitForJobs(
  host: ClusterClient,
  member: string,
  { signal, report, ...options }: WaitOptions & Pick<HostContext, "signal" | "report">,
): Promise<readonly Stored<Job>[]> {
  let rest: readonly Stored<Job>[] = [];
  await until(
    async () => {
      const before = rest;
      rest = await unfinishedJobs(host, member, signal);
      const uids = new Set(rest.map(({ metadata }) => metadata.uid));
      for (const job of before) if (!uids.has(job.metadata.uid)) report(`Job ${namespacedName(job)} has finished`);
      return rest.length === 0;
    },
    { intervalMs: POLL_MS, signal, ...options },
  );
  return rest;
}
