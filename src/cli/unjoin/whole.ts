import type { Job, KubeObject } from "../../api/kubernetes.ts";
import { resourceOfType } from "../../api/resources.ts";
import { membersOfJob, sharesOf } from "../../copies/job-shares.ts";
import { isFinished, WHOLE_SELECTOR } from "../../copies/jobs.ts";
import type { WholeFamily } from "../../copies/whole-families.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { jobs, type Resource } from "../../kube/resources.ts";
import { type FinishingWhole, namesOf } from "../member/delegated.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import type { HostContext } from "../shared/session.ts";
import { until, type WaitOptions } from "../shared/wait.ts";

// Each poll lists the whole Jobs of all members.
const POLL_MS = 2000;

/** Lists what the member has whole, or has a share of, and what has not finished there. */
export async function unfinishedWhole(
  host: ClusterClient,
  member: string,
  signal: AbortSignal,
): Promise<FinishingWhole> {
  const whole = await listAll(host, jobs, { labelSelector: WHOLE_SELECTOR, signal });
  const isThere = (job: Job): boolean => membersOfJob(job).includes(member) && !isFinished(job);
  return { jobs: whole.filter((job) => isThere(job) && !hasFinishedIn(job, member)) };
}

function hasFinishedIn(job: Job, member: string): boolean {
  return sharesOf(job)?.some((share) => share.member === member && isFinished(share)) ?? false;
}

/** Waits until what the member has whole has finished. Resolves to the rest on timeout. */
export async function waitForWhole(
  host: ClusterClient,
  member: string,
  { signal, report, ...options }: WaitOptions & Pick<HostContext, "signal" | "report">,
): Promise<FinishingWhole> {
  let rest = await unfinishedWhole(host, member, signal);
  await until(
    async () => {
      const before = namesOf(rest);
      rest = await unfinishedWhole(host, member, signal);
      const left = new Set(namesOf(rest).values());
      for (const name of before.values()) if (!left.has(name)) report(`${name} has finished`);
      return left.size === 0;
    },
    { intervalMs: POLL_MS, signal, ...options },
  );
  return rest;
}

/** Lists the resources of which members may have copies, by family: their clean-up looks for each. */
const COPIED: {
  readonly [Family in WholeFamily]: (
    host: ClusterClient,
    signal: AbortSignal,
  ) => Promise<readonly Resource<KubeObject>[]>;
} = {
  jobs: async () => [jobs],
  types: async (host, signal) => (await listDelegatedTypes(host, signal)).map(resourceOfType),
};

export async function copiedWhole(host: ClusterClient, signal: AbortSignal): Promise<readonly Resource<KubeObject>[]> {
  return (await Promise.all(Object.values(COPIED).map((list) => list(host, signal)))).flat();
}
