import { CREATE_ENDS_MS, IN_FLIGHT_MS } from "../../../kube/request-ends.ts";
import type { Refusal } from "../../../placement/candidate.ts";
import { because } from "../../../placement/needs.ts";
import { openMembers } from "../../../scheduling/retries/pause.ts";
import { type Action, type DelegationDecision, decided, type Phase } from "../decision/decision.ts";
import { createIn } from "../decision/delegates.ts";
import { ranked } from "../decision/on-demand.ts";
import { report } from "../decision/report.ts";
import type { MemberView, PodView } from "../decision/view.ts";
import { bindToLostNode } from "./unreachable.ts";

// Most creates that fail without a plain answer succeed, or are refused, soon after.
const UNCERTAIN_QUIETLY_MS = 5000;
// Another member may have the pod then, once this one is known not to have it.
const UNCERTAIN_MS = 30_000;

/** A create was sent to a member that has not shown the delegate: no other member gets the pod before that is known. */
export const resolveUncertain: Phase = (view, now) => {
  const uncertain = view.members.find(({ name }) => name === view.memory.uncertain);
  if (uncertain === undefined) return undefined;
  return uncertain.reachable ? createAgain(uncertain, view, now) : bindToLostNode(uncertain, "may have", view, now);
};

/** The same create again gives a definite answer: the delegate is made now, or it was made before. */
function createAgain({ name, apiPending }: MemberView, view: PodView, now: number): DelegationDecision {
  const { proxy, memory } = view;
  const { uncertainCreate } = memory;
  if (apiPending === true) return decided("Waiting", [], now + IN_FLIGHT_MS);
  const create = createIn(proxy, name);
  if (uncertainCreate === undefined || now < uncertainCreate.since + UNCERTAIN_QUIETLY_MS)
    return decided("Placing", [create]);
  const message = `may have the pod, and fails to say so: ${uncertainCreate.message}`;
  const reason = "ClusterNotReady";
  const { actions: reports, againAt } = report(because(reason, [{ cluster: name, reason, message }]), view, now);
  if (now < uncertainCreate.since + UNCERTAIN_MS || !hasOther(name, view, now))
    return decided("Placing", [...reports, create], againAt);
  const over = uncertainCreate.lastAt + CREATE_ENDS_MS;
  if (now < over) return decided("Waiting", reports, over, againAt);
  const refusal: Refusal = { cluster: name, reason: "RefusedByMember", message: uncertainCreate.message };
  const resolve: Action = { type: "confirmCreated", member: name, proxyUid: proxy.metadata.uid, refusal };
  return decided("Placing", [...reports, resolve], againAt);
}

function hasOther(member: string, observed: PodView, now: number): boolean {
  const view = ranked(observed);
  return openMembers(view.ranking?.fitting ?? [], view, now).some((other) => other !== member);
}
