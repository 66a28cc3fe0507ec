import { statusFrom } from "../../../pods/feedback.ts";
import { lostStatus } from "../../../pods/lost-status.ts";
import { isTerminal } from "../../../pods/pod-state.ts";
import { decided, type Phase } from "../model/decision.ts";
import { boundMember, lastRecorded } from "../model/delegates.ts";
import { feedback, verdict } from "../model/feedback.ts";
import { writeAgainAt } from "../model/futile-writes.ts";
import { refusalOfOwnMember, wallTime } from "../model/view.ts";

/** The recorded delegate ended before it went: its last status is the pod's. */
export const endedBeforeItWent: Phase = (view, now) => {
  const last = lastRecorded(view);
  if (last === undefined || !isTerminal(last)) return undefined;
  const actions = feedback(view.proxy, last);
  return decided("Finished", actions, writeAgainAt(view.memory, actions, now));
};

/** The delegate went although no one on the host deleted the proxy: the pod fails, as after an eviction on a node. */
export const vanished: Phase = (view, now) => {
  const { proxy } = view;
  const member = boundMember(view);
  if (member === undefined) return undefined;
  const refusal = refusalOfOwnMember(member, view);
  const again = refusal === undefined ? "" : ` and cannot be made again: ${refusal}`;
  const message = `Cluster ${member.name}: the pod was deleted there${again}`;
  const last = lastRecorded(view);
  const shown = last === undefined ? undefined : statusFrom(proxy, last, { gone: true });
  const base = shown === undefined ? proxy : { ...proxy, status: shown };
  const wanted = lostStatus(base, { message, disruptedBy: "DeletedInMember", now: wallTime(view, now) });
  const actions = verdict(proxy, wanted);
  return decided("Vanished", actions, writeAgainAt(view.memory, actions, now));
};
