import type { MemberReason } from "./reasons.ts";

/** A step of a pod's life. */
export interface Station {
  /** RFC 3339. Undefined if unrecorded or pending. */
  readonly at: string | undefined;
  /** Whose clock the time is from: `host`, or the member's name. Absent without a time. */
  readonly clock?: string;
  /** The step is over, and its time is not on record. */
  readonly isUntimed?: true;
  readonly what: string;
  /** Further lines. */
  readonly details: readonly string[];
  /** Why no member takes the pod, of which the details are the lines. */
  readonly reasons?: readonly MemberReason[];
}

/** A time, and whose clock it is from. */
export type Stamp = Pick<Station, "at" | "clock" | "isUntimed">;

/** Returns a time of the host's clock. Without one the step is pending. */
export function onHost(at: string | undefined): Stamp {
  return at === undefined ? { at } : { at, clock: HOST_CLOCK };
}

/** Returns a time of a member's clock, or of the host's for a pod without a member. */
export function inMember(at: string | undefined, member: string | undefined): Stamp {
  return at === undefined ? { at } : { at, clock: member ?? HOST_CLOCK };
}

/** Marks a step that is over without a time on record. */
export const UNTIMED: Stamp = { at: undefined, isUntimed: true };

const HOST_CLOCK = "host";

/** Builds a step without the details that are undefined. */
export function station(stamp: Stamp, what: string, ...details: (string | undefined)[]): Station {
  return { ...stamp, what, details: details.filter((detail) => detail !== undefined) };
}

// Kubernetes' times have whole seconds, two clocks differ by some, and the Binding is written after the kubelet's first step.
const SAME_TIME_MS = 2_000;

/**
 * Orders steps that are given in the order of their causes: by time, but by cause where times are within two seconds of each other.
 * A step without a time on record follows its cause; one that is pending comes last.
 */
export function inOrder(causal: readonly Station[]): Station[] {
  const timed: { readonly step: Station; readonly ms: number }[] = [];
  let cause = 0;
  for (const step of causal) {
    const own = Date.parse(step.at ?? "");
    const ms = Number.isNaN(own) ? (step.isUntimed === true ? cause : Number.POSITIVE_INFINITY) : own;
    if (ms !== Number.POSITIVE_INFINITY) cause = ms;
    let index = timed.length;
    while (index > 0 && (timed[index - 1]?.ms ?? 0) - ms > SAME_TIME_MS) index -= 1;
    timed.splice(index, 0, { step, ms });
  }
  return timed.map(({ step }) => step);
}
