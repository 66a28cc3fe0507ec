import { decided, type Phase } from "../model/decision.ts";
import { boundMember } from "../model/delegates.ts";
import { notReadyWrite } from "../model/feedback.ts";
import { writeAgainAt } from "../model/futile-writes.ts";

/** The member of a bound proxy does not answer, or has still to be read: what runs there is not known. */
export const unreachable: Phase = (view, now) => {
  const member = boundMember(view);
  if (member?.reachable === true && member.read) return undefined;
  const actions = notReadyWrite(view, member, now);
  return decided("Unreachable", actions, writeAgainAt(view.memory, actions, now));
};
