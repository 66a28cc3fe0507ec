import { jsonEqual } from "../../api/json.ts";
import { SHARES_ANNOTATION } from "../../api/keys.ts";
import { timestamp } from "../../api/kubernetes.ts";
import { LOOK_AGAIN_MS, LOSS, type WholePhase } from "../../controllers/whole/model.ts";
import { decideBy, releaseObject, reportToAuthor, settlingUntil, show } from "../../controllers/whole/phases.ts";
import { hasWholeFinalizer } from "../../copies/objects.ts";
import { isOfQueue } from "../../copies/queued-objects.ts";
import { heldUntil } from "../../runtime/held-writes.ts";
import { newShares } from "./choice.ts";
import { moveShare } from "./division.ts";
import { hasStarted, isFinished, isIdle, isQueued, type JobStatus, type LossReason, waitsInMember } from "./kind.ts";
import type { JobDecision, JobMember, Observed, Shown } from "./model.ts";
import { isFailing, type JobShare } from "./shares.ts";
import { lostJobStatus, shareWithStatus, statusOnHost } from "./status.ts";

// A member that may soon be asked again does not lose its share to another: both could create it.
const MOVES_BEFORE_MS = 10_000;
// The pause before a copy of a failing Job is looked at again whose change is under way.
const STOPPING_MS = 1_000;
// The pause before a Job is looked at again whose members are still being read.
const SYNCING_MS = 1_000;
// The longer a Job runs, the more seldom counters alone are written, so that a Job of any size costs the host few writes.
const COUNTERS = { shareOfAge: 0.2, leastMs: 1_000, mostMs: 60_000 };

/** A whole Job's life, from top to bottom. */
const PHASES: readonly WholePhase<Observed, JobDecision>[] = [end, rest, unreadable, place, lose, requeue, run];

/** The first phase that answers decides. */
export const decide: (observed: Observed, now: number, wall: number) => JobDecision = decideBy(PHASES);

/** Waits until the copies, which the copier deletes, are gone, and no request can make one any more. */
function end(observed: Observed, now: number): JobDecision | undefined {
  const { object: job, places } = observed;
  if (job.metadata.deletionTimestamp === undefined) return undefined;
  if (!hasWholeFinalizer(job)) return { actions: [], outcome: "Gone" };
  if (places.some(({ state }) => state === "silent")) return { actions: [], outcome: "Unreachable" };
  if (places.some(({ copy }) => copy !== undefined)) return { actions: [], outcome: "Removing" };
  const asked = places.filter(({ state }) => state === "usable").map(({ member }) => member);
  return releaseObject(observed, { places, asked }, now);
}

/** Leaves a finished Job as it is: its TTL on the host deletes it. */
function rest({ object: job }: Observed): JobDecision | undefined {
  return isFinished(job) ? { actions: [], outcome: "Finished" } : undefined;
}

/** Touches no copy of a Job whose record was damaged: a share could run twice. */
function unreadable({ object: job, isUnreadable }: Observed, now: number): JobDecision | undefined {
  if (isUnreadable !== true) return undefined;
  const message = `annotation ${SHARES_ANNOTATION} cannot be read, so nothing changes in members; delete the Job, and create it anew`;
  return reportToAuthor(job, { message, outcome: "Unreadable" }, now + LOOK_AGAIN_MS);
}

/** Records the members before anything is created in them, so that no other member has the Job or a share of it. */
function place({ object: job, places, choice }: Observed, now: number): JobDecision | undefined {
  if (places.length > 0) return undefined;
  if (isQueued(job)) return { actions: [], outcome: "Queued" };
  // A new leader has not read all members yet, and shares stay as they are.
  if (choice?.awaits === true) return { actions: [], outcome: "Syncing", requeueAt: now + SYNCING_MS };
  const shares = choice === undefined ? [] : newShares(job, choice);
  if (shares.length === 0) return reportToAuthor(job, { message: choice?.why ?? "", outcome: "Waiting" });
  return { actions: [{ type: "record", object: job, assignment: shares }], outcome: "Placing" };
}

/** Ends a share whose copy is lost. Another copy would start from the beginning. */
function lose(observed: Observed, now: number, wall: number): JobDecision | undefined {
  for (const one of observed.places) {
    const loss = lossOf(observed, one);
    if (loss === undefined) continue;
    const until = heldUntil(observed.held, { write: LOSS, now });
    if (until !== undefined) return { actions: [], outcome: "StatusHeld", requeueAt: until };
    const { object: job, places } = observed;
    const at = timestamp(wall);
    const shares = sharesNow(places).map((share) =>
      share.member === one.member ? { ...share, status: lostJobStatus(share, { ...loss, now: at }) } : share,
    );
    const shown = shownOf(job, shares, uncertain(places));
    const isGone = one.state === "gone";
    return { actions: [{ type: "fail", object: job, member: one.member, isGone, shown }], outcome: "Failing" };
  }
  return undefined;
}

function lossOf(
  { object: job }: Observed,
  { member, share, state, copy, settlesAt }: JobMember,
): { readonly reason: LossReason; readonly message: string } | undefined {
  if (isFinished(share)) return undefined;
  // Nothing tells any more what became of it.
  if (state === "gone")
    return { reason: "ClusterRemoved", message: `Cluster ${member}, which had the Job, was removed` };
  if (state !== "usable" || copy !== undefined) return undefined;
  if (hasStarted(share)) {
    return { reason: "DeletedInMember", message: `a client of ${member} deleted the Job there` };
  }
  if (share.part === undefined || !isFailing(job) || settlesAt !== undefined) return undefined;
  return { reason: "OtherShareFailed", message: `${member} had not started its share when another failed` };
}

/**
 * Takes the member from a Job that Kueue has taken back before any of its pods ended: the next flavor may be another member's.
 * The copier then deletes the copy, which is suspended and has no pods.
 */
function requeue(observed: Observed, now: number): JobDecision | undefined {
  const { object: job, places } = observed;
  const [only] = places;
  if (!isOfQueue(job) || only === undefined || places.length > 1 || only.share.part !== undefined) return undefined;
  const { state, copy, isChanging, problem } = only;
  if (state !== "usable" || copy === undefined || isChanging === true || !isIdle(copy)) return undefined;
  // Kueue may have admitted it again by now.
  const mayGoOn = !isQueued(job) && problem === undefined;
  if (mayGoOn) return undefined;
  // Without a member, a Job that has started would be taken for lost.
  if (!hasStarted(job)) return { actions: [{ type: "record", object: job, assignment: [] }], outcome: "Requeueing" };
  const shown = shownOf(job, [{ member: only.member }]);
  if (jsonEqual(shown.status, job.status)) return undefined;
  return show(observed, { shown, dueAt: now }, now);
}

/** Writes the copies' status, and then sees to shares that no member runs. */
function run(observed: Observed, now: number, wall: number): JobDecision | undefined {
  const followed = follow(observed, now, wall);
  if (followed !== undefined && followed.actions.length > 0) return followed;
  const waiting = move(observed, now) ?? tell(observed, now);
  if (followed?.requeueAt === undefined || waiting === undefined) return waiting ?? followed;
  return { ...waiting, requeueAt: Math.min(followed.requeueAt, waiting.requeueAt ?? followed.requeueAt) };
}

/** Writes the copies' status to the Job. */
function follow(observed: Observed, now: number, wall: number): JobDecision | undefined {
  const { object: job, places, sent } = observed;
  const recorded: Shown = { status: job.status ?? {}, shares: divided(places.map(({ share }) => share)) };
  const shown = shownOf(job, sharesNow(places), uncertain(places));
  const before = sent?.shown ?? recorded;
  if (jsonEqual(shown, recorded)) {
    // The end of a write is an event only if the member did it.
    const isChanging = isFailing(job) && places.some((place) => place.isChanging === true);
    const settlesAt = isFailing(job) ? settlingUntil(places, now) : undefined;
    if (!isChanging && settlesAt === undefined) return undefined;
    return { actions: [], outcome: "Stopping", requeueAt: isChanging ? now + STOPPING_MS : (settlesAt ?? now) };
  }
  const dueAt = isNews(before, shown) ? now : (sent?.at ?? 0) + pauseMs(shown.status, wall);
  return show(observed, { shown, dueAt }, now);
}

function shownOf(...[job, shares, ...known]: Parameters<typeof statusOnHost>): Shown {
  return { status: statusOnHost(job, shares, ...known), shares: divided(shares) };
}

/** Returns the shares that a record tells apart. A member that has all of the Job has the Job's own status. */
function divided(shares: readonly JobShare[]): readonly JobShare[] {
  return shares.filter(({ part }) => part !== undefined);
}

function sharesNow(places: readonly JobMember[]): JobShare[] {
  return places.map(({ share, state, copy }) =>
    state === "usable" && copy?.status !== undefined && !isFinished(share) ? shareWithStatus(share, copy) : share,
  );
}

/** Returns the members whose copies may have changed since they were seen. */
function uncertain(places: readonly JobMember[]): ReadonlySet<string> {
  const those = places.filter(({ state, isChanging }) => state !== "usable" || isChanging === true);
  return new Set(those.map(({ member }) => member));
}

/** Reports whether more than counters differ. */
function isNews(before: Shown, now: Shown): boolean {
  if (isOtherState(before.status, now.status)) return true;
  return now.shares.some(({ status }, index) => isOtherState(before.shares[index]?.status, status));
}

function isOtherState(before: JobStatus | undefined, now: JobStatus | undefined): boolean {
  return before?.startTime !== now?.startTime || !jsonEqual(before?.conditions ?? [], now?.conditions ?? []);
}

function pauseMs({ startTime }: JobStatus, wall: number): number {
  const age = startTime === undefined ? 0 : wall - Date.parse(startTime);
  return Math.min(Math.max(age * COUNTERS.shareOfAge, COUNTERS.leastMs), COUNTERS.mostMs);
}

/** Gives what its member does not take to another. */
function move({ object: job, places, choice }: Observed, now: number): JobDecision | undefined {
  if (choice === undefined || isFailing(job)) return undefined;
  const messages: string[] = [];
  for (const { member, share, copy, refusal, settlesAt } of places) {
    if (refusal === undefined || copy !== undefined || hasStarted(share)) continue;
    // A create before the refused one may still be done: the share would run twice.
    if (settlesAt !== undefined) return { actions: [], outcome: "Settling", requeueAt: settlesAt };
    // The answer to the next attempt is an event.
    if (refusal.until < now + MOVES_BEFORE_MS) return { actions: [], outcome: "Refused" };
    const other = choice.fitting.find((one) => places.every((place) => place.member !== one));
    if (other === undefined) {
      messages.push(`${member}: ${refusal.message}`);
      continue;
    }
    const shares = places.map((one) =>
      one.member === member ? moveShare(share, other, choice.preferences) : one.share,
    );
    return {
      actions: [{ type: "record", object: job, assignment: shares, move: { from: member, to: other } }],
      outcome: "Placing",
    };
  }
  if (messages.length === 0) return undefined;
  const message = [...messages, choice.why].filter((words) => words !== "").join("; ");
  return reportToAuthor(job, { message, outcome: "Waiting" });
}

/** Tells the author why nothing is created in a member, or why what is there does not begin. */
function tell({ object: job, places }: Observed, now: number): JobDecision | undefined {
  const problems = places.flatMap(({ member, problem, copy }) => {
    if (problem === undefined || (copy !== undefined && !waitsInMember(job, copy))) return [];
    return [copy === undefined ? `${member}: ${problem}` : `${member} has the Job, which has begun there: ${problem}`];
  });
  if (problems.length === 0) return undefined;
  return reportToAuthor(job, { message: problems.join("; "), outcome: "Waiting" }, now + LOOK_AGAIN_MS);
}
