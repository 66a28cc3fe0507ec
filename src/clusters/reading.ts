import type { Failing } from "../runtime/reflector.ts";

/** What is known of the reading of one member at a moment; times are epoch ms. */
export interface ReadingState {
  readonly pods: Failing | undefined;
  /** Only until they have been read once: what is known of them holds on. */
  readonly nodes: Failing | undefined;
  /** Since when what counted already when this was last judged has failed. */
  readonly counted?: Counted | undefined;
  /** Since when its API server has answered, but for a probe now and then; undefined when it does not. */
  readonly answeringSince: number | undefined;
  /** How long a failure may last until it counts, as with the probe. */
  readonly patienceMs: number;
}

/** Beginnings of failures, epoch ms. */
export interface Counted {
  readonly pods?: number | undefined;
  readonly nodes?: number | undefined;
}

/** What cannot be read of a member whose API server answers, and why. */
export interface Unreadable {
  readonly pods?: string;
  readonly nodes?: string;
  /** When what fails now begins to count; undefined when nothing fails, or all of it counts. */
  readonly dueAt?: number;
}

/**
 * Judges a member's watches: what fails for a while, though probes are answered, is not going to mend itself. What has
 * counted once counts until it works: a probe that fails now and then says nothing of it.
 */
export function unreadable(state: ReadingState, now: number): Unreadable {
  const { pods, nodes, counted = {}, answeringSince, patienceMs } = state;
  const dueOf = (failing: Failing | undefined, countedSince: number | undefined): number => {
    if (failing === undefined) return Number.POSITIVE_INFINITY;
    if (failing.since === countedSince) return Number.NEGATIVE_INFINITY;
    // The probe has a word for it, and watches begin again when it succeeds.
    if (answeringSince === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(failing.since, answeringSince) + patienceMs;
  };
  const [podsDue, nodesDue] = [dueOf(pods, counted.pods), dueOf(nodes, counted.nodes)];
  const dues = [podsDue, nodesDue].filter((due) => due > now && Number.isFinite(due));
  return {
    ...(pods !== undefined && podsDue <= now ? { pods: `its pods cannot be read: ${pods.reason}` } : {}),
    ...(nodes !== undefined && nodesDue <= now ? { nodes: `its nodes cannot be read: ${nodes.reason}` } : {}),
    ...(dues.length === 0 ? {} : { dueAt: Math.min(...dues) }),
  };
}
