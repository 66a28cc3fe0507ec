import { everRan } from "../../../pods/pod-state.ts";
import { decided, type Phase } from "../decision/decision.ts";
import { boundMember, endsUnstarted, isFor, isRecorded, recordOn, withdraw } from "../decision/delegates.ts";
import { withoutConditionsOf } from "../decision/feedback.ts";
import { isFutile, statusPurpose, writeAgainAt } from "../decision/write-purpose.ts";

/** A second delegate of a bound proxy is put on record if the proxy has never started; else it goes, so that the pod runs once. */
export const adopt: Phase = (view, now) => {
  const { proxy, memory } = view;
  const member = boundMember(view);
  const delegate = member?.delegate;
  if (member === undefined || delegate === undefined || !isFor(delegate, proxy) || isRecorded(delegate, proxy)) {
    return undefined;
  }
  if (endsUnstarted(delegate)) return decided("Withdrawing", []);
  if (everRan(proxy)) return decided("Running", withdraw(member));
  if (delegate.spec?.nodeName === undefined) return decided("Running", []);
  // Conditions of the first delegate go first. Where that is refused or undone, it must not hold up the rest.
  const conditions = withoutConditionsOf(proxy, member.departed).filter(
    ({ patch }) => !isFutile(memory, patch, statusPurpose(patch), now),
  );
  if (conditions.length === 0) return decided("Running", [recordOn(proxy, delegate)]);
  return decided("Running", conditions, writeAgainAt(memory, conditions, now));
};
