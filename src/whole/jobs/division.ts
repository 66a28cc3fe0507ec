import { defined } from "../../api/defined.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import { preferencesFor, type SchedulingPreferences } from "../../api/preferences.ts";
import { divide } from "../../placement/division.ts";
import { isFinished, isMarkedTrue } from "./kind.ts";
import { isFailing, type JobShare } from "./shares.ts";

// The API server's own limit for Indexed Jobs (pkg/apis/batch/validation, maxParallelismForIndexedJob).
const MOST_AT_ONCE = 100_000;

/** Divides the pods at once by the preferences, and completions in these proportions. Returns nothing if the preferences give none. */
export function divideJob(
  { metadata, spec }: Stored<Job>,
  preferences: SchedulingPreferences,
  members: readonly string[],
): JobShare[] {
  const { completions = 1, parallelism = 1 } = spec ?? {};
  // Without parallelism the Job waits, and is divided as if all its pods could run.
  const atOnce = Math.min(parallelism === 0 ? completions : parallelism, completions, MOST_AT_ONCE);
  const key = `${metadata.namespace}/${metadata.name}`;
  const { replicas } = divide({ total: Math.max(1, atOnce), preferences, clusters: members, key });
  // By name: the rank of members changes all the time.
  const given = members.filter((member) => (replicas[member] ?? 0) > 0).toSorted();
  const parts = apportion(
    completions,
    given.map((member) => replicas[member] ?? 0),
  );
  return given.flatMap((member, index) => {
    const own = preferencesFor(preferences, member);
    return own === undefined ? [] : [{ member, part: { ...own, completions: parts[index] ?? 0 } }];
  });
}

/** Returns the share for another member, whose own limit counts there. */
export function moveShare(
  { part }: JobShare,
  member: string,
  preferences: SchedulingPreferences | undefined,
): JobShare {
  if (part === undefined) return { member };
  const { maxReplicas: _, ...kept } = part;
  const { maxReplicas } = (preferences && preferencesFor(preferences, member)) ?? {};
  return { member, part: { ...kept, ...defined({ maxReplicas }) } };
}

/** Returns the Job as the share's member runs it. Shares of a Job that fails are suspended, which ends their pods. */
export function jobOfShare(job: Stored<Job>, share: JobShare, shares: readonly JobShare[]): Stored<Job> {
  const { member, part } = share;
  if (part === undefined || job.spec === undefined) return job;
  const parallelism = parallelismOf(job, shares)[member] ?? 0;
  const stops = isFailing(job) && !isEnding(share) ? { suspend: true } : {};
  return { ...job, spec: { ...job.spec, completions: part.completions, parallelism, ...stops } };
}

/** Suspends a resumed copy only after its Job controller shows the resumption: before, `Suspended` holds even if pods have started. */
export function afterResumption(share: Stored<Job>, copy: Stored<Job> | undefined): Stored<Job> {
  const isResuming = copy !== undefined && copy.spec?.suspend !== true && isMarkedTrue(copy.status, "Suspended");
  if (!isResuming || share.spec?.suspend !== true) return share;
  return { ...share, spec: { ...share.spec, suspend: false } };
}

/** Divides the Job's parallelism over the shares that have not finished. Once one has failed, no other takes over. */
function parallelismOf(job: Stored<Job>, shares: readonly JobShare[]): Readonly<Record<string, number>> {
  const { metadata, spec } = job;
  const open = isFailing(job) ? shares : shares.filter((share) => !isFinished(share));
  const clusters = open.flatMap(({ member, part }) => {
    if (part === undefined) return [];
    const { completions, weight, minReplicas, maxReplicas = completions } = part;
    const most = Math.min(maxReplicas, completions);
    return [[member, { weight, minReplicas: Math.min(minReplicas, most), maxReplicas: most }] as const];
  });
  return divide({
    total: Math.min(spec?.parallelism ?? 1, MOST_AT_ONCE),
    preferences: { rebalance: false, clusters: Object.fromEntries(clusters) },
    clusters: open.map(({ member }) => member),
    key: `${metadata.namespace}/${metadata.name}`,
  }).replicas;
}

/** Reports whether the member's Job controller starts no more pods of the share. */
function isEnding({ status }: JobShare): boolean {
  return isMarkedTrue(status, "SuccessCriteriaMet", "Complete", "FailureTarget", "Failed");
}

/** Divides a total in proportion to the weights, by the largest remainders. */
function apportion(total: number, weights: readonly number[]): number[] {
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const parts = weights.map((weight) => Math.floor((total * weight) / all));
  const left = total - parts.reduce((sum, part) => sum + part, 0);
  const byRemainder = weights
    .map((weight, index) => ({ index, remainder: (total * weight) % all }))
    .sort((a, b) => b.remainder - a.remainder || a.index - b.index);
  const more = new Set(byRemainder.slice(0, left).map(({ index }) => index));
  return parts.map((part, index) => (more.has(index) ? part + 1 : part));
}
