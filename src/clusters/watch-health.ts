import { timestamp } from "../api/kubernetes.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { ReflectorFailure } from "../runtime/reflector-failure.ts";

/** The watches of one member at a moment; times are epoch ms. */
export interface WatchState {
  readonly pods: ReflectorFailure | undefined;
  /** Only until the nodes were read once: their capacity stays valid. */
  readonly nodes: ReflectorFailure | undefined;
  /** Since when each is being listed; epoch ms. */
  readonly listing?: CountedFailures;
  /** Starts of the failures that counted at the last judgement. */
  readonly counted?: CountedFailures | undefined;
  /** When the API server last began to answer probes; undefined while it is unreachable. */
  readonly answeringSince: number | undefined;
  /** Milliseconds that a failure may last before it counts, as with the probe. */
  readonly patienceMs: number;
}

/** Starts of failures that count; epoch ms. */
interface CountedFailures {
  readonly pods?: number | undefined;
  readonly nodes?: number | undefined;
}

/** Why the watches of a member fail although it answers. */
export interface Unreadable {
  readonly pods?: string;
  readonly nodes?: string;
  /** The list that takes long, though nothing refuses it. */
  readonly slow?: string;
  /** When the next failure or delay begins to count; epoch ms. */
  readonly dueAt?: number;
}

// Most members list their pods within this time.
const SLOW_AFTER_MS = 10_000;

/**
 * Judges a member's watches: a failure that outlasts the patience although probes succeed will not mend itself. A server that
 * takes its time refuses nothing, however long it takes.
 */
export function unreadable(state: WatchState, now: number): Unreadable {
  const { pods, nodes, counted = {}, answeringSince, patienceMs } = state;
  const dueOf = (failing: ReflectorFailure | undefined, countedSince: number | undefined): number => {
    if (failing === undefined || failing.isLate === true) return Number.POSITIVE_INFINITY;
    if (failing.since === countedSince) return Number.NEGATIVE_INFINITY;
    // The probe reports this, and watches are retried when it succeeds.
    if (answeringSince === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(failing.since, answeringSince) + patienceMs;
  };
  const [podsDue, nodesDue] = [dueOf(pods, counted.pods), dueOf(nodes, counted.nodes)];
  const slow = slowness(state);
  const dues = [podsDue, nodesDue, slow?.at ?? Number.POSITIVE_INFINITY].filter(
    (due) => due > now && Number.isFinite(due),
  );
  return {
    ...(pods !== undefined && podsDue <= now ? { pods: `its pods cannot be read: ${pods.reason}` } : {}),
    ...(nodes !== undefined && nodesDue <= now ? { nodes: `its nodes cannot be read: ${nodes.reason}` } : {}),
    ...(slow !== undefined && slow.at <= now ? { slow: slow.message } : {}),
    ...(dues.length === 0 ? {} : { dueAt: Math.min(...dues) }),
  };
}

/** Returns what takes long, and when that is to be said; epoch ms. */
function slowness({
  pods,
  nodes,
  listing = {},
  answeringSince,
}: WatchState): { readonly at: number; readonly message: string } | undefined {
  if (answeringSince === undefined) return undefined;
  const parts: readonly (readonly [string, number | undefined, ReflectorFailure | undefined])[] = [
    ["pods", listing.pods, pods],
    ["nodes", listing.nodes, nodes],
  ];
  for (const [what, since, failing] of parts) {
    const isLate = failing?.isLate === true;
    const begunAt = since ?? (isLate ? failing.since : undefined);
    if (begunAt === undefined || (failing !== undefined && !isLate)) continue;
    const doing = since === undefined ? "are not watched, for want of an answer," : "are being listed";
    const at = Math.max(begunAt, answeringSince) + SLOW_AFTER_MS;
    return { at, message: `its ${what} ${doing} since ${timestamp(begunAt)}` };
  }
  return undefined;
}

export interface WatchHealthOptions {
  readonly clock: Clock;
  /** Returns why another cluster answers, which fails every watch; undefined otherwise. */
  readonly mistaken: () => string | undefined;
  readonly failing: () => Pick<WatchState, "pods" | "nodes" | "listing" | "patienceMs">;
  /** Called when a lasting failure begins to count, which no other event reports. */
  readonly onDue: () => void;
}

/** Tracks which watches of a member fail although its API server answers. */
export class WatchHealth {
  readonly #options: WatchHealthOptions;
  #answeringSince: number | undefined;
  #counted: CountedFailures = {};
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: WatchHealthOptions) {
    this.#options = options;
  }

  get unreadable(): Unreadable {
    const { clock, mistaken, failing } = this.#options;
    const reason = mistaken();
    if (reason !== undefined) return { pods: reason };
    return unreadable({ ...failing(), counted: this.#counted, answeringSince: this.#answeringSince }, clock.now());
  }

  answering(): void {
    this.#answeringSince ??= this.#options.clock.now();
    this.#plan(this.unreadable.dueAt);
  }

  unreachable(): void {
    this.#answeringSince = undefined;
  }

  /** The reported failures count until they end. */
  reported({ pods, nodes, dueAt }: Unreadable): void {
    const failing = this.#options.failing();
    this.#counted = {
      pods: pods === undefined ? undefined : failing.pods?.since,
      nodes: nodes === undefined ? undefined : failing.nodes?.since,
    };
    this.#plan(dueAt);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #plan(at: number | undefined): void {
    const { clock, onDue } = this.#options;
    this.#timer?.cancel();
    if (at === undefined || this.#stopped) return;
    this.#timer = clock.after(at - clock.now(), onDue);
  }
}
