import { IN_FLIGHT_MS } from "../../../kube/request-ends.ts";
import { mayHold } from "../../../scheduling/memory.ts";
import { type DelegationDecision, decided, type Phase } from "../decision/decision.ts";
import { quietFor, waitBecause } from "../decision/report.ts";
import type { MemberView, PodView } from "../decision/view.ts";
import { READ_QUIETLY_MS } from "./choose.ts";

/** Waits until members that may hold a delegate of the previous leader, or of an earlier connection, have shown or denied it. */
export const awaitPreviousLeader: Phase = (view, now) => {
  const { proxy, members, memory } = view;
  const holding = members.filter(({ name, excluded }) => mayHold(memory, name) && excluded === undefined);
  const unasked = unaskedOf(holding, view);
  const unread = holding.filter((member) => !member.read || (!member.reachable && unasked.includes(member)));
  if (unread.length > 0) return awaitRead(unread, view, now);
  const requestsEndedAt = Math.max(...holding.map(requestsEndAt));
  if (now < requestsEndedAt) return decided("Waiting", [], requestsEndedAt);
  if (unasked.length === 0) return undefined;
  const asked = unasked.map((member) => ({ name: member.name, since: requestsEndAt(member) }));
  return decided("Waiting", [{ type: "readPreviousDelegate", proxyUid: proxy.metadata.uid, members: asked }]);
};

function awaitRead(unread: readonly MemberView[], view: PodView, now: number): DelegationDecision {
  const quiet = quietFor(READ_QUIETLY_MS, view, now);
  if (quiet !== undefined && unread.every(({ faltering }) => faltering)) return quiet;
  const reason = "ClusterNotReady";
  const names = unread.map(({ name }) => name);
  const since = view.memory.fresh ? "its address changed" : "the controller started";
  const message = `may have the pod from before ${since}, and has not answered since`;
  const refusals = names.map((cluster) => ({ cluster, reason, message }));
  return waitBecause({ reason, message: `${names.join(", ")}: ${message}`, refusals }, view, now);
}

/** Watches may lag. Where only one member may have the pod, its name refuses a second delegate. */
function unaskedOf(holding: readonly MemberView[], { members, memory }: PodView): MemberView[] {
  const open = members.filter(({ excluded }) => excluded === undefined);
  if (memory.fresh || Object.keys(memory.attempts).length > 0 || open.length < 2) return [];
  return holding.filter(({ name }) => memory.confirmedAbsent?.includes(name) !== true);
}

function requestsEndAt({ reachableSince }: MemberView): number {
  return reachableSince + IN_FLIGHT_MS;
}
