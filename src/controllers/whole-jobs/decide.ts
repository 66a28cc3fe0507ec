import { jsonEqual } from "../../api/json.ts";
import { WHOLE_FINALIZER } from "../../api/keys.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import { hasStarted, isFinished, type JobStatus, type LossReason, statusOnHost } from "../../copies/jobs.ts";
import { heldUntil } from "../../runtime/held-writes.ts";
import { type JobDecision, LOOK_AGAIN_MS, LOSS, type Observed, STATUS, statusContent } from "./model.ts";

type Phase = (observed: Observed, now: number, wall: number) => JobDecision | undefined;

// A member that may soon be asked again does not lose the Job to another: both could create it.
const MOVES_BEFORE_MS = 10_000;
// The longer a Job runs, the more seldom counters alone are written, so that a Job of any size costs the host few writes.
const COUNTERS = { shareOfAge: 0.2, leastMs: 1_000, mostMs: 60_000 };

/** A whole Job's life, from top to bottom. The first phase that answers decides. */
const PHASES: readonly Phase[] = [end, rest, place, failRemoved, move, failVanished, tell, follow];

export function decide(observed: Observed, now: number, wall: number): JobDecision {
  for (const phase of PHASES) {
    const decision = phase(observed, now, wall);
    if (decision !== undefined) return decision;
  }
  return { actions: [], outcome: "InStep" };
}

/** Waits until the copy, which the copier deletes, is gone. */
function end({ job, place }: Observed): JobDecision | undefined {
  const { deletionTimestamp, finalizers = [] } = job.metadata;
  if (deletionTimestamp === undefined) return undefined;
  if (!finalizers.includes(WHOLE_FINALIZER)) return { actions: [], outcome: "Gone" };
  if (place?.state === "silent") return { actions: [], outcome: "Unreachable" };
  if (place?.copy !== undefined) return { actions: [], outcome: "Removing" };
  const asked = place?.state === "usable" ? { member: place.member } : {};
  return { actions: [{ type: "release", job, ...asked }], outcome: "Releasing" };
}

/** Leaves a finished Job as it is: its TTL on the host deletes it. */
function rest({ job }: Observed): JobDecision | undefined {
  return isFinished(job) ? { actions: [], outcome: "Finished" } : undefined;
}

/** Records the member before anything is created there, so that no other member has the Job. */
function place({ job, place, choice }: Observed): JobDecision | undefined {
  return place === undefined ? give(job, choice) : undefined;
}

/** Fails a Job whose Cluster was removed: nothing tells any more what became of it. */
function failRemoved(observed: Observed, now: number): JobDecision | undefined {
  const { place } = observed;
  if (place?.state !== "gone") return undefined;
  const message = `Cluster ${place.member}, which had the Job, was removed`;
  return fail(observed, now, { member: place.member, reason: "ClusterRemoved", message });
}

/** Gives a Job that its member does not take to another. */
function move({ job, place, choice }: Observed, now: number): JobDecision | undefined {
  if (place?.refusal === undefined || place.copy !== undefined || hasStarted(job)) return undefined;
  const { member, refusal } = place;
  // The answer to the next attempt is an event.
  if (refusal.until < now + MOVES_BEFORE_MS) return { actions: [], outcome: "Refused" };
  const others = choice && { ...choice, fitting: choice.fitting.filter((other) => other !== member) };
  return give(job, others, { member, message: `${member}: ${refusal.message}` });
}

/** Fails a Job whose copy a client of the member deleted. Another copy would start from the beginning. */
function failVanished(observed: Observed, now: number): JobDecision | undefined {
  const { job, place } = observed;
  if (place?.state !== "usable" || place.copy !== undefined || !hasStarted(job)) return undefined;
  const message = `a client of ${place.member} deleted the Job there`;
  return fail(observed, now, { member: place.member, reason: "DeletedInMember", message });
}

/** Tells the author why nothing is created in the member. */
function tell({ job, place }: Observed, now: number): JobDecision | undefined {
  if (place?.problem === undefined || place.copy !== undefined) return undefined;
  const message = `${place.member}: ${place.problem}`;
  return { actions: [{ type: "report", job, message }], outcome: "Waiting", requeueAt: now + LOOK_AGAIN_MS };
}

/** Writes the copy's status to the Job. */
function follow({ job, place, statusSent, held }: Observed, now: number, wall: number): JobDecision | undefined {
  const inMember = place?.copy?.status;
  if (place?.state !== "usable" || inMember === undefined) return undefined;
  const status = statusOnHost(job, inMember);
  if (jsonEqual(status, job.status ?? {})) return undefined;
  const until = held && heldUntil(held, { write: STATUS, content: statusContent(status), now });
  if (until !== undefined) return { actions: [], outcome: "StatusHeld", requeueAt: until };
  const isUrgent = isNews(statusSent?.status ?? job.status, status);
  const dueAt = isUrgent ? now : (statusSent?.at ?? 0) + pauseMs(status, wall);
  if (now < dueAt) return { actions: [], outcome: "Coalescing", requeueAt: dueAt };
  return { actions: [{ type: "status", job, status }], outcome: "Following" };
}

/** Reports whether more than counters differ. */
function isNews(before: JobStatus | undefined, status: JobStatus): boolean {
  return before?.startTime !== status.startTime || !jsonEqual(before?.conditions ?? [], status.conditions ?? []);
}

function pauseMs({ startTime }: JobStatus, wall: number): number {
  const age = startTime === undefined ? 0 : wall - Date.parse(startTime);
  return Math.min(Math.max(age * COUNTERS.shareOfAge, COUNTERS.leastMs), COUNTERS.mostMs);
}

function fail(
  { job, held }: Observed,
  now: number,
  loss: { readonly member: string; readonly reason: LossReason; readonly message: string },
): JobDecision {
  const until = heldUntil(held, { write: LOSS, now });
  if (until !== undefined) return { actions: [], outcome: "StatusHeld", requeueAt: until };
  return { actions: [{ type: "fail", job, ...loss }], outcome: "Failing" };
}

function give(
  job: Stored<Job>,
  choice: Observed["choice"],
  before?: { readonly member: string; readonly message: string },
): JobDecision {
  const [member] = choice?.fitting ?? [];
  if (member !== undefined) {
    const asked = before === undefined ? {} : { before: before.member };
    return { actions: [{ type: "record", job, member, ...asked }], outcome: "Placing" };
  }
  const message = [before?.message ?? "", choice?.why ?? ""].filter((words) => words !== "").join("; ");
  return { actions: [{ type: "report", job, message }], outcome: "Waiting" };
}
