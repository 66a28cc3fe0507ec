import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/logger.ts";

interface Contest {
  /** The source's version that it was written for. */
  readonly version: string;
  /** When it was written; epoch ms. */
  readonly writes: number[];
}

/** The copy, for people. */
interface Contested {
  readonly member: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

// More than anybody changes by hand, and less than a controller.
const MOST_WRITES = 5;
const WITHIN_MS = 60_000;
const REST_MS = 10 * 60_000;

/**
 * Copies that somebody else in the member keeps changing or deleting: a controller that adds pull secrets to every account, a webhook
 * that fills in a Secret, a load balancer's controller that annotates every Service. Secrets with tokens, too. After some writes for one version of the source, they are left as the other wants them for a while.
 */
export class Contests<Key extends string> {
  readonly #clock: Pick<Clock, "now">;
  readonly #contests = new Map<Key, Contest>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** The copy was written for this version of its source; true when it is left alone from now on. */
  note(key: Key, version: string): boolean {
    const now = this.#clock.now();
    const known = this.#contests.get(key);
    const before = known?.version === version ? known.writes : [];
    const writes = [...before.filter((at) => now - at < WITHIN_MS), now];
    this.#contests.set(key, { version, writes });
    return writes.length === MOST_WRITES;
  }

  /** The same, and it is said when the copy is left alone from now on. */
  noteAndTell(key: Key, version: string, { member, kind, namespace, name }: Contested, log: Logger): void {
    if (!this.note(key, version)) return;
    const words = `somebody else keeps changing or deleting ${kind} ${name} there: it is left so for ten minutes`;
    log.warn({ member, namespace }, words);
  }

  /** Until when the copy is left as it is; undefined when it is kept like this version of its source. Epoch ms. */
  until(key: Key, version: string): number | undefined {
    const contest = this.#contests.get(key);
    if (contest?.version !== version || contest.writes.length < MOST_WRITES) return undefined;
    const until = (contest.writes.at(-1) ?? 0) + REST_MS;
    return this.#clock.now() < until ? until : undefined;
  }

  forget(key: Key): void {
    this.#contests.delete(key);
  }

  /** Forgets all but these. */
  retain(keys: ReadonlySet<Key>): void {
    for (const key of this.#contests.keys()) if (!keys.has(key)) this.forget(key);
  }
}
