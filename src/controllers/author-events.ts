import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import type { KubeEvent } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError, isRefusal } from "../kube/errors.ts";
import { events } from "../kube/resources.ts";
import { Backoff } from "../runtime/backoff.ts";
import type { Clock, Timer } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type About, authorEvent } from "./author-event.ts";
import { Denials } from "./denials.ts";

export interface AuthorEventsOptions {
  readonly host: ClusterClient;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What the author of an object is told of it. */
export interface News {
  readonly reason: string;
  readonly message: string;
  /** The command that shows the whole message, where it is longer than an event can be. */
  readonly all?: string;
  /** Default: Warning. */
  readonly type?: "Normal" | "Warning";
  /** End of the event's name, where what was said once is not to be said again; default: one that no other event has. */
  readonly suffix?: string;
}

interface Untold {
  readonly event: KubeEvent;
  /** When it happened; epoch ms. */
  readonly since: number;
  readonly backoff: Backoff;
}

// Few, so that an API server that takes its time for events, or whose webhook does, has places for all else.
const CONCURRENCY = 8;
// About 10 MB. What does not fit is lost, as a kubelet's events are.
const MOST_UNTOLD = 10_000;
const BACKOFF = { initialMs: 200, maxMs: 30_000 };
// What keeps events from being taken for longer is nothing that passes; conditions say the same of pods that wait.
const TRIED_FOR_MS = 10 * 60_000;

/**
 * Tells authors of objects, in events on the host, what became of them. Nobody's work depends on an event: who tells goes on at
 * once and need not know what became of it, as with client-go's recorders. There is one rule for all: what the API server refuses
 * is not told, and what it may take another time is sent again until it does.
 */
export class AuthorEvents {
  readonly #options: AuthorEventsOptions;
  readonly #log: Logger;
  readonly #denials: Denials;
  /** In their order. */
  readonly #waiting = new Set<Untold>();
  /** Those that were not taken, until they are sent again. */
  readonly #resting = new Map<Untold, Timer>();
  readonly #underWay = new Map<Untold, Promise<void>>();
  readonly #abort = new AbortController();
  /** In no reconcile's context: it sends what others have told, too. */
  readonly #pump = AsyncLocalStorage.bind(() => {
    for (const untold of this.#waiting) {
      if (this.#underWay.size >= CONCURRENCY || this.#abort.signal.aborted) return;
      this.#waiting.delete(untold);
      const sent = this.#send(untold).finally(() => {
        this.#underWay.delete(untold);
        this.#pump();
      });
      this.#underWay.set(untold, sent);
    }
  });

  constructor(options: AuthorEventsOptions) {
    this.#options = options;
    this.#log = options.log.child({ controller: "author-events" });
    this.#denials = new Denials(options.clock);
  }

  /**
   * Has the author told, and returns at once; never throws. From then on it counts as told: it is, or the API server refuses it
   * for good (a policy, a namespace that is going or gone) or for ten minutes on end, and then a line of log says so.
   */
  tell(about: About, { reason, message, all, type = "Warning", suffix = randomBytes(8).toString("hex") }: News): void {
    if (this.#abort.signal.aborted) return;
    const { clock } = this.#options;
    const event = authorEvent(about, { reason, message, all, type, suffix, at: clock.wall() });
    const untold = { event, since: clock.now(), backoff: new Backoff(BACKOFF) };
    if (this.#waiting.size + this.#resting.size + this.#underWay.size >= MOST_UNTOLD) {
      this.#log.warn(wordsOf(untold.event), "an event is not told: too many others wait");
      return;
    }
    this.#waiting.add(untold);
    this.#pump();
  }

  /** Tells nothing more, and resolves when no request is under way. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error("stopped"));
    this.#waiting.clear();
    for (const timer of this.#resting.values()) timer.cancel();
    this.#resting.clear();
    await Promise.all(this.#underWay.values());
  }

  async #send(untold: Untold): Promise<void> {
    const { signal } = this.#abort;
    try {
      await this.#options.host.create(events, untold.event, { signal, metadataOnly: true });
    } catch (error) {
      if (!signal.aborted) this.#failed(untold, error);
    }
  }

  #failed(untold: Untold, error: unknown): void {
    // By an earlier leader, or by an attempt whose answer was lost.
    if (isKubeError(error, "AlreadyExists")) return;
    const { clock } = this.#options;
    const words = wordsOf(untold.event);
    if (!isKubeError(error)) {
      this.#log.error({ ...words, err: error }, "an event is not told");
      return;
    }
    const { retryAfterMs = 0 } = error;
    // Its namespace may be gone, too.
    const isRefused = (isRefusal(error) && !this.#denials.mayPass(error)) || isKubeError(error, "NotFound");
    if (isRefused || clock.now() >= untold.since + TRIED_FOR_MS) {
      this.#log[isRefused ? "info" : "warn"]({ ...words, code: error.code }, `an event is not told: ${error.message}`);
      return;
    }
    const delayMs = Math.max(untold.backoff.next(), retryAfterMs);
    const again = (): void => {
      this.#resting.delete(untold);
      this.#waiting.add(untold);
      this.#pump();
    };
    this.#resting.set(untold, clock.after(delayMs, again));
  }
}

/** What the log says of an event. */
function wordsOf({ involvedObject, reason, message }: KubeEvent): object {
  const { kind, namespace, name, uid } = involvedObject;
  return { kind, object: `${namespace}/${name}`, uid, reason, told: message };
}
