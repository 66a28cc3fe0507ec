import type { Refusal } from "../../../placement/candidate.ts";
import { because, isPrepared } from "../../../placement/needs.ts";
import type { Ranking } from "../../../placement/rank.ts";
import { gangLeaves } from "../../../placement/refusal-messages.ts";
import { isGated } from "../../../pods/pod-state.ts";
import { allRefusals, nextRetry, openMembers, parkable } from "../../../scheduling/retries/pause.ts";
import { type Action, type DelegationDecision, decided, type Phase } from "../decision/decision.ts";
import { createIn } from "../decision/delegates.ts";
import { preparationFor, ranked, withNeeds } from "../decision/on-demand.ts";
import { quietFor, waitBecause, waitingSince } from "../decision/report.ts";
import { type PodView, requestsIn, unknownPlacement } from "../decision/view.ts";

// A slow member has answered by then; a lost one is known to be lost, as its probe hurries.
const AWAIT_MS = 10_000;
/** Members that are being read when a controller starts to lead, or when they join, mostly have been by then; ms. */
export const READ_QUIETLY_MS = 5000;
// The watch shows a namespace some moments after a pod that was created with it.
const OPT_IN_QUIETLY_MS = 5000;
// A pod follows the first of its group within moments. What takes longer is worth a condition and an event.
const FOLLOW_QUIETLY_MS = 5000;

/** A scheduling gate holds the pod, as it does for any scheduler. */
export const gated: Phase = ({ proxy }) => (isGated(proxy) ? decided("Gated", []) : undefined);

/** The namespace is not opted in, or the placement annotations cannot be read. */
export const awaitPlacement: Phase = (view, now) => {
  const unknown = unknownPlacement(view);
  if (unknown === undefined) return undefined;
  const quiet = view.invalid === undefined ? quietFor(OPT_IN_QUIETLY_MS, view, now) : undefined;
  return quiet ?? waitBecause(unknown, view, now);
};

/** Another pod of the group is being placed, and this one follows it. */
export const followGroup: Phase = (view, now) =>
  view.follows === true ? quietFor(FOLLOW_QUIETLY_MS, view, now) : undefined;

/** Waits for objects that the pod names and the host lacks, and for members that are still being read for the workload's division. */
export const awaitNeeds: Phase = (view, now) => {
  const { needs, syncing } = withNeeds(view);
  if (needs?.state === "missing") return waitBecause({ reason: needs.reason, message: needs.message }, view, now);
  // Events of their own tell when either has been read.
  return needs?.state === "awaited" || syncing === true ? decided("Waiting", []) : undefined;
};

/** An answer of the best member is overdue. Room is reserved in it, so that the workload's other pods go elsewhere. */
export const awaitBest: Phase = (observed, now) => {
  const view = ranked(observed);
  const { proxy, memory, ranking } = view;
  if (ranking?.awaited === undefined) return undefined;
  const until = waitingSince(view) + AWAIT_MS;
  const [member] = openMembers([ranking.awaited], view, now);
  if (member === undefined || now >= until) return undefined;
  if (reservedRoom(ranking, view, now).length > 0 || openMembers(ranking.fitting, view, now)[0] === member) {
    return undefined;
  }
  const requests = requestsIn(view, member);
  const reserve: Action = { type: "reserve", member, proxyUid: proxy.metadata.uid, requests };
  return decided("Waiting", memory.reserved === member ? [] : [reserve], until);
};

/** The best member that takes the pod gets its delegate. Where none has room, the pod waits in the best of them. */
export const choose: Phase = (observed, now) => {
  const view = ranked(observed);
  const { proxy, members, ranking } = view;
  if (ranking === undefined) return decided("Waiting", [], now);
  const roomy = [...reservedRoom(ranking, view, now), ...openMembers(ranking.fitting, view, now)];
  const choices = roomy.length > 0 ? roomy : parkable(ranking, view, now);
  const occupied = new Set(members.filter(({ delegate }) => delegate !== undefined).map(({ name }) => name));
  const awaitUntil = waitingSince(view) + AWAIT_MS;
  // The delegate of an earlier pod of that name ends with an event of its own, but may never end.
  const vacant = now < awaitUntil ? undefined : choices.find((name) => !occupied.has(name));
  const best = vacant ?? choices[0];
  if (best === undefined) return handOver(awaitRoom(allRefusals(ranking, view, now), view, now), view);
  if (occupied.has(best)) {
    if (now < awaitUntil) return decided("Withdrawing", [], awaitUntil);
    const message = "still has the delegate of an earlier pod of that name";
    const why = because("NotPlaced", [{ cluster: best, reason: "NameTaken", message }]);
    return waitBecause(why, view, now, { requeueAt: nextRetry(view, now) });
  }
  const gathering = gather(best, roomy.length === 0, view, now);
  if (gathering !== undefined) return gathering;
  if (!isPrepared(preparationFor(view, best))) {
    return decided("Preparing", [{ type: "prepare", member: best, proxyUid: proxy.metadata.uid }]);
  }
  return decided("Placing", [createIn(proxy, best, roomy.length === 0)]);
};

/** Pods of a gang leave other members first: a scheduler there may start one at any moment, and then the gang stays. */
function gather(best: string, isParked: boolean, view: PodView, now: number): DelegationDecision | undefined {
  const { proxy, members, memory, gang } = view;
  const others = (gang?.heldIn ?? []).filter((name) => name !== best);
  if (gang === undefined || others.length === 0) return undefined;
  const { uid: proxyUid } = proxy.metadata;
  const requests = requestsIn(view, best);
  const reserve: Action[] = memory.reserved === best ? [] : [{ type: "reserve", member: best, proxyUid, requests }];
  const actions: Action[] = isParked ? [{ type: "gather", member: best, proxyUid }] : reserve;
  // They leave within moments, unless a member cannot be told or refuses to let them go.
  const isCutOff = members.some(({ name, reachable }) => others.includes(name) && !reachable);
  if (!isCutOff && memory.reported !== undefined) return decided("Waiting", actions);
  const quiet = isCutOff ? undefined : quietFor(FOLLOW_QUIETLY_MS, view, now);
  const why = because("NotPlaced", [{ cluster: best, ...gangLeaves(gang.text, others) }]);
  const wait = quiet ?? waitBecause(why, view, now);
  return { ...wait, actions: [...actions, ...wait.actions] };
}

/** The leader of a gang finds no member: another pod of it may. */
function handOver(wait: DelegationDecision, { proxy, gang }: PodView): DelegationDecision {
  if (gang?.leads !== true) return wait;
  return { ...wait, actions: [...wait.actions, { type: "handOver", proxyUid: proxy.metadata.uid }] };
}

/** The reserved room counts as used, so the member looks full for the very pod that it is reserved for. */
function reservedRoom(ranking: Ranking, view: PodView, now: number): string[] {
  const isOverdue = (name: string): boolean =>
    view.members.some((member) => member.name === name && member.overdue === true);
  const reserved = ranking.full.filter((name) => name === view.memory.reserved);
  return openMembers(reserved, view, now).filter((name) => !isOverdue(name));
}

function awaitRoom(refusals: readonly Refusal[], view: PodView, now: number): DelegationDecision {
  const quiet = quietFor(READ_QUIETLY_MS, view, now);
  if (quiet !== undefined && view.members.some(({ faltering }) => faltering)) return quiet;
  return waitBecause(because("NotPlaced", refusals), view, now, { requeueAt: nextRetry(view, now) });
}
