import { isKubeError, isLastingRefusal, type KubeError, mayBeStarting } from "../kube/errors.ts";
import { backoffMs } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import {
  type HeldWrite,
  type HeldWrites,
  HOLD_MS,
  type HoldReason,
  heldUntil,
  heldWrite,
  refusedAgain,
} from "./held-writes.ts";
import type { Words } from "./told.ts";
import { UndoneWrites, type Wanted } from "./undone-writes.ts";

/** The class of a failed write: `transient` is to be tried again soon, `lasting` has been transient for too long. */
export type FailureClass = "transient" | "lasting" | "refused";

export interface WriteGuardOptions {
  readonly clock: Pick<Clock, "now">;
  /** How long a write is held unless the caller says otherwise; default `HOLD_MS`. */
  readonly holdMs?: number;
  /** A failure after this pause is a new one. Must exceed the pause between two attempts; default two minutes. */
  readonly forgetFailureMs?: number;
}

/** How long, and for which content, a write is held. */
export interface Hold {
  /** The only content that is held. Absent: any content is. */
  readonly content?: string;
  readonly holdMs?: number;
  /** Doubles the time with each hold until the write is done, up to this; ms. */
  readonly maxHoldMs?: number;
}

const FORGET_FAILURE_MS = 2 * 60_000;
/** For writes that are held for minutes once they are refused; ms. */
export const FORGET_HELD_FAILURE_MS: number = 15 * 60_000;
// A transient failure counts as lasting after this long. Most webhooks and starting API servers answer sooner.
const LASTING_AFTER_MS = 10_000;
// More often than people change an object by hand, and less often than a controller does.
const WRITTEN = { most: 5, withinMs: 60_000 };
// An autoscaler takes its field back within seconds or minutes. Longer than a hold: after one, a single write shows whether the
// other manager still undoes it.
const PUT_BACK = { most: 2, withinMs: 15 * 60_000 };

/**
 * Keeps controllers from sending the same write again while it is refused, has no effect, or is undone by another
 * manager. The caller names each write, and the object that it changes by any key.
 */
export class WriteGuard<Key extends string = string, W extends Words = Words> {
  readonly #options: WriteGuardOptions;
  readonly #held = new Map<Key, HeldWrites<W>>();
  /** Failures that may pass by themselves; the latest comes last. */
  readonly #failing = new Map<string, { readonly since: number; readonly lastAt: number }>();
  readonly #undone = new UndoneWrites<Key>(WRITTEN);
  readonly #putBack = new UndoneWrites<Key>(PUT_BACK);

  constructor(options: WriteGuardOptions) {
    this.#options = options;
  }

  of(object: Key): HeldWrites<W> | undefined {
    return this.#held.get(object);
  }

  /** Returns the write's entry until it is done, also after it may be sent again. */
  get(object: Key, write: string): HeldWrite<W> | undefined {
    return heldWrite(this.#held.get(object), write);
  }

  /** Returns epoch ms; undefined when the content may be written now. */
  heldUntil(object: Key, write: string, content?: string): number | undefined {
    const now = this.#options.clock.now();
    return heldUntil(this.#held.get(object), { write, now, ...(content === undefined ? {} : { content }) });
  }

  mayWrite(object: Key, write: string, content?: string): boolean {
    return this.heldUntil(object, write, content) === undefined;
  }

  hold(object: Key, write: string, reason: HoldReason, { why, ...hold }: Hold & { readonly why?: string } = {}): void {
    this.#hold(object, write, { reason, ...(why === undefined ? {} : { why }) }, hold);
  }

  /** Holds a write that the API server refuses for good. Returns true if the author has not been told of it lately. */
  refuse(object: Key, write: string, why: W, hold: Hold = {}): boolean {
    const before = this.get(object, write)?.refusal;
    const refusal = refusedAgain(before, why, this.#options.clock.now());
    this.#hold(object, write, { reason: "Refused", refusal }, hold);
    return refusal.reported !== before?.reported || refusal.reportedAt !== before.reportedAt;
  }

  /** Judges a failed write. Failures before `reachableSince`, the cluster's last return (epoch ms), do not count. */
  failed(object: Key, write: string, error: KubeError, reachableSince = 0): FailureClass {
    if (isLastingRefusal(error)) return "refused";
    const key = mayBeStarting(error) ? rightOf(error) : failureKey(object, write);
    return this.#mayPass(key, reachableSince) ? "transient" : "lasting";
  }

  /** Records a failure that the caller judged itself. Reports whether it may still pass. */
  mayPass(object: Key, write: string, reachableSince = 0): boolean {
    return this.#mayPass(failureKey(object, write), reachableSince);
  }

  /** Reports whether the write has failed since it was last answered. */
  isFailing(object: Key, write: string): boolean {
    const series = this.#failing.get(failureKey(object, write));
    return series !== undefined && this.#options.clock.now() - series.lastAt < this.#forgetFailureMs;
  }

  /** The write was answered, though parts of it may be refused. */
  answered(object: Key, write: string): void {
    this.#failing.delete(failureKey(object, write));
  }

  /** Ends the hold of a write that succeeded, or is not wanted any more. Returns true if that ends a refusal of it. */
  done(object: Key, write: string): boolean {
    this.answered(object, write);
    const entry = this.get(object, write);
    if (entry === undefined) return false;
    this.#set(object, this.#others(object, write));
    return entry.refusal !== undefined;
  }

  /** Records a successful write. Holds it, and returns true, after five in a minute that another manager undoes. */
  written(object: Key, write: string, wanted: Wanted, hold: Hold = {}): boolean {
    this.done(object, write);
    if (!this.#undone.note(object, wanted, this.#options.clock.now())) return false;
    this.#hold(object, write, { reason: "Undone" }, hold);
    return true;
  }

  /** Reports whether `written` returns true after one more write for the same purpose. */
  isAlmostUndone(object: Key, wanted: Wanted): boolean {
    return this.#undone.count(object, wanted, this.#options.clock.now()) >= WRITTEN.most - 1;
  }

  /** Records a write that has put back what another manager had changed. */
  putBack(object: Key, write: string): void {
    this.done(object, write);
    this.#putBack.note(object, { [write]: "" }, this.#options.clock.now());
  }

  /**
   * Reports whether another manager has changed again what a write had put back twice within fifteen minutes: then the write is
   * held. After the hold it may be sent once.
   */
  contested(object: Key, write: string, hold: Hold & { readonly why: string }): boolean {
    if (this.get(object, write) !== undefined) return !this.mayWrite(object, write);
    const times = this.#putBack.count(object, { [write]: "" }, this.#options.clock.now());
    if (times < PUT_BACK.most) return false;
    this.hold(object, write, "Undone", hold);
    return true;
  }

  forget(object: Key): void {
    this.#held.delete(object);
    this.#undone.forget(object);
    this.#putBack.forget(object);
  }

  #hold(object: Key, write: string, entry: Omit<HeldWrite<W>, "until">, hold: Hold): void {
    const { content, holdMs = this.#options.holdMs ?? HOLD_MS, maxHoldMs } = hold;
    const now = this.#options.clock.now();
    const { times = 0 } = this.get(object, write) ?? {};
    const until = now + (maxHoldMs === undefined ? holdMs : backoffMs(times, { initialMs: holdMs, maxMs: maxHoldMs }));
    const held: HeldWrite<W> = {
      ...entry,
      until,
      ...(content === undefined ? {} : { content }),
      ...(maxHoldMs === undefined ? {} : { times: times + 1 }),
    };
    // A patch is a write of its own: without this, those that may be sent again would pile up.
    const others = this.#others(object, write).filter(
      ([, other]) => other.until > now || (other.refusal ?? other.why ?? other.times) !== undefined,
    );
    this.#set(object, [...others, [write, held]]);
  }

  #others(object: Key, write: string): [string, HeldWrite<W>][] {
    return Object.entries(this.#held.get(object) ?? {}).filter(([other]) => other !== write);
  }

  #set(object: Key, held: readonly (readonly [string, HeldWrite<W>])[]): void {
    if (held.length === 0) this.#held.delete(object);
    else this.#held.set(object, Object.fromEntries(held));
  }

  #mayPass(key: string, reachableSince: number): boolean {
    const now = this.#options.clock.now();
    for (const [other, { lastAt }] of this.#failing) {
      if (now - lastAt < this.#forgetFailureMs) break;
      this.#failing.delete(other);
    }
    const { since = now } = this.#failing.get(key) ?? {};
    this.#failing.delete(key);
    this.#failing.set(key, { since, lastAt: now });
    return now < Math.max(since, reachableSince) + LASTING_AFTER_MS;
  }

  get #forgetFailureMs(): number {
    return this.#options.forgetFailureMs ?? FORGET_FAILURE_MS;
  }
}

/** Reports whether the API server answered the write, and may take the same one the next time. */
export function isTransient(error: unknown): error is KubeError {
  if (isKubeError(error, "ServerError", "TooManyRequests", "AnswerLost", "BadAnswer")) return true;
  return isKubeError(error) && mayBeStarting(error);
}

/** A missing right is missing for all objects of the resource. */
function rightOf({ cluster, verb, resource }: KubeError): string {
  return `${cluster}/${verb}/${resource}`;
}

function failureKey(object: string, write: string): string {
  return JSON.stringify([object, write]);
}
