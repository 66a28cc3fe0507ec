import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { Rewrites } from "../rewrites.ts";

/** A copy that is left alone. */
interface Rest {
  /** The source's version that it was written for. */
  readonly version: string;
  /** Epoch ms. */
  readonly until: number;
}

/** The copy, for people. */
interface Contested {
  readonly member: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

const REST_MS = 10 * 60_000;

/**
 * Copies that somebody else in the member keeps changing or deleting: a controller that adds pull secrets to every account, a webhook
 * that fills in a Secret, a load balancer's controller that annotates every Service. Secrets with tokens, too. After some writes for one version of the source, they are left as the other wants them for a while.
 */
export class Contests<Key extends string> {
  readonly #clock: Pick<Clock, "now">;
  readonly #rewrites = new Rewrites();
  readonly #rests = new Map<Key, Rest>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** The copy was written for this version of its source; true when it is left alone from now on. */
  note(key: Key, version: string): boolean {
    const now = this.#clock.now();
    const isUndone = this.#rewrites.note(key, { version }, now);
    if (isUndone) this.#rests.set(key, { version, until: now + REST_MS });
    else this.#rests.delete(key);
    return isUndone;
  }

  /** The same, and it is said when the copy is left alone from now on. */
  noteAndTell(key: Key, version: string, { member, kind, namespace, name }: Contested, log: Logger): void {
    if (!this.note(key, version)) return;
    const words = `somebody else keeps changing or deleting ${kind} ${name} there: it is left so for ten minutes`;
    log.warn({ member, namespace }, words);
  }

  /** Until when the copy is left as it is; undefined when it is kept like this version of its source. Epoch ms. */
  until(key: Key, version: string): number | undefined {
    const rest = this.#rests.get(key);
    return rest?.version === version && this.#clock.now() < rest.until ? rest.until : undefined;
  }

  forget(key: Key): void {
    this.#rewrites.forget(key);
    this.#rests.delete(key);
  }

  /** None but these is left alone any longer. */
  retain(keys: ReadonlySet<Key>): void {
    for (const key of this.#rests.keys()) if (!keys.has(key)) this.forget(key);
  }
}
