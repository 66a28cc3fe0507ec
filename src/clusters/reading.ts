import type { Failing } from "../runtime/reflector.ts";

/** What is known of the reading of one member at a moment; times are epoch ms. */
export interface ReadingState {
  readonly pods: Failing | undefined;
  /** Only until they have been read once: what is known of them holds on. */
  readonly nodes: Failing | undefined;
  /** Since when its API server has answered every probe; undefined when it did not answer the last. */
  readonly answeringSince: number | undefined;
  /** How long a failure may last until it counts, as with the probe. */
  readonly patienceMs: number;
}

/** What cannot be read of a member whose API server answers, and why. */
export interface Unreadable {
  readonly pods?: string;
  readonly nodes?: string;
  /** When what fails now begins to count; undefined when nothing fails, or all of it counts. */
  readonly dueAt?: number;
}

/** Judges a member's watches: what fails for a while, though probes are answered, is not going to mend itself. */
export function unreadable({ pods, nodes, answeringSince, patienceMs }: ReadingState, now: number): Unreadable {
  // The probe has a word for it, and watches begin again when it succeeds.
  if (answeringSince === undefined) return {};
  const dueOf = (failing: Failing | undefined): number =>
    failing === undefined ? Number.POSITIVE_INFINITY : Math.max(failing.since, answeringSince) + patienceMs;
  const dues = [dueOf(pods), dueOf(nodes)].filter((due) => due > now && Number.isFinite(due));
  return {
    ...(pods !== undefined && dueOf(pods) <= now ? { pods: `its pods cannot be read: ${pods.reason}` } : {}),
    ...(nodes !== undefined && dueOf(nodes) <= now ? { nodes: `its nodes cannot be read: ${nodes.reason}` } : {}),
    ...(dues.length === 0 ? {} : { dueAt: Math.min(...dues) }),
  };
}
