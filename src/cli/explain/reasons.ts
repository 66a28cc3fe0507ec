/** Why something is not in a member, or waits. */
export interface MemberReason {
  /** Undefined: it is said of no single member. */
  readonly member?: string;
  readonly message: string;
}

// A reason may have a semicolon of its own.
const NEXT_MEMBER = /; (?=[a-z0-9][-a-z0-9]*: )/;

/** Returns the reasons of which the controller makes one message of a condition or event: `east: full; west: not selected by …`. */
export function reasonsOf(message: string): MemberReason[] {
  return message
    .split(NEXT_MEMBER)
    .filter((part) => part !== "")
    .map((part) => {
      const [, member, rest] = /^([a-z0-9][-a-z0-9]*): (.*)$/s.exec(part) ?? [];
      return member === undefined || rest === undefined ? { message: part } : { member, message: rest };
    });
}

// `placementExcludes` and `claimExcludes` say so of members that the author left out: nothing has to change there.
const LEFT_OUT =
  /^not named by |^its labels do not match |^no term of |^the pod's nodeSelector says |, which the pod needs, is in /;

/**
 * Returns the shortest of the reasons in a message, and how many members have others. The same reason of all is told once. Members
 * that the author left out count only if there are no others.
 */
export function shortestReason(message: string): string {
  const reasons = reasonsOf(message);
  const isLeftOut = ({ message: reason }: MemberReason): number => Number(LEFT_OUT.test(reason));
  const [first, ...others] = reasons.toSorted(
    (a, b) => isLeftOut(a) - isLeftOut(b) || a.message.length - b.message.length,
  );
  if (first === undefined || others.length === 0) return message;
  if (others.every((other) => other.message === first.message)) return `${first.message} (all ${reasons.length})`;
  return `${reasonLine(first)}, and ${others.length} more`;
}

export function reasonLine({ member, message }: MemberReason): string {
  return member === undefined ? message : `${member}: ${message}`;
}
