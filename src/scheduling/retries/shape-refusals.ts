import type { Refusal, RefusalReason } from "../../placement/candidate.ts";
import type { Pause } from "../placement-view.ts";
import { type PodShape, ShapeMap } from "../pod-shapes.ts";
import { RETRY_AFTER_MS } from "./backoff.ts";

interface Entry extends Pause {
  /** The member's `roomVersion` at the refusal. */
  readonly version: string;
  /** The pod that is tried for all: the others wait for its answer. */
  trial?: { readonly uid: string; readonly until: number };
}

// A trial without an answer is forgotten after this.
const TRIAL_MS = 60_000;

/** The shapes of pods that members refused. After a change in the member, or a while, one pod tries for all of its shape. */
export class ShapeRefusals {
  readonly #shapes = new ShapeMap<Entry>();
  readonly #trials = new Map<string, { readonly member: string; readonly shape: PodShape }>();

  /** Notes that the member takes no pod of this shape. The pod's own backoff of `restMs` holds up others no longer than that. */
  refuse(
    member: string,
    shape: string,
    refusal: Refusal,
    version: string,
    now: number,
    restMs: number = RETRY_AFTER_MS,
  ): void {
    this.#shapes.set(member, shape, { refusal, until: now + Math.min(restMs, RETRY_AFTER_MS), version });
  }

  attempt(member: string, shape: PodShape, uid: string, now: number): void {
    this.abandon(uid);
    const entries = this.#entries(member, shape);
    if (entries.length === 0) return;
    for (const entry of entries) entry.trial = { uid, until: now + TRIAL_MS };
    this.#trials.set(uid, { member, shape });
  }

  /** Ends the pod's trial. Reports whether other pods waited for it. */
  abandon(uid: string): boolean {
    const trial = this.#trials.get(uid);
    if (trial === undefined) return false;
    this.#trials.delete(uid);
    const entries = this.#entries(trial.member, trial.shape).filter((entry) => entry.trial?.uid === uid);
    for (const entry of entries) delete entry.trial;
    return entries.length > 0;
  }

  /** Notes that the member takes pods of this shape. Reports whether it had refused some. `only`: other reasons stay. */
  accept(member: string, shape: PodShape, only?: RefusalReason): boolean {
    let known = false;
    for (const text of Object.values(shape)) {
      const reason = this.#shapes.get(member, text)?.refusal.reason;
      if (only === undefined || reason === only) known = this.#shapes.delete(member, text) || known;
    }
    return known;
  }

  pause(member: string, shape: PodShape, uid: string, version: string, now: number): Pause | undefined {
    for (const entry of this.#entries(member, shape)) {
      const { trial, refusal } = entry;
      if (trial !== undefined && now < trial.until) {
        if (trial.uid !== uid) return { refusal, until: trial.until };
      } else if (now < entry.until && entry.version === version) return entry;
    }
    return undefined;
  }

  get empty(): boolean {
    return this.#shapes.empty;
  }

  #entries(member: string, shape: PodShape): Entry[] {
    return Object.values(shape).flatMap((text) => this.#shapes.get(member, text) ?? []);
  }
}
