import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError, isRefusal } from "../kube/errors.ts";
import type { KubeEvent } from "../kube/objects.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { createEvent, patchEvent } from "./event-requests.ts";
import { KeyedTimers } from "./keyed-timers.ts";
import { type EventSource, makeEvent, type ObjectReference } from "./kube-event.ts";
import { isReadable } from "./told.ts";
import { WriteGuard } from "./write-guard.ts";

export interface EventRecorderOptions {
  readonly client: ClusterClient;
  readonly source: EventSource;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface NewEvent {
  readonly reason: string;
  readonly message: string;
  /** The command that shows the whole message, for one longer than an event can be. */
  readonly seeAlso?: string;
  /** Default: Warning. */
  readonly type?: "Normal" | "Warning";
  /** End of the event's name, for an event that is recorded once. Default: a random one. */
  readonly suffix?: string;
  /** An earlier leader may have recorded the event with this suffix, so that it is looked for before it is created. */
  readonly mayExist?: boolean;
  /** Events with the same key are recorded once in fifty minutes: an earlier one is still there to be read. */
  readonly dedupe?: string;
}

interface Pending {
  readonly event: KubeEvent;
  readonly mayExist: boolean;
  /** Time when it happened; epoch ms. */
  readonly since: number;
  readonly backoff: Backoff;
}

// Few, so that an API server or webhook that is slow with events leaves connections for all other requests.
const CONCURRENCY = 8;
// About 10 MB. Further events are dropped, as client-go's broadcaster does.
const MOST_PENDING = 10_000;
const BACKOFF = { initialMs: 200, maxMs: 30_000 };
// A longer outage does not pass soon. The conditions of waiting pods say the same.
const GIVE_UP_AFTER_MS = 10 * 60_000;
// Some 2 MB. The oldest keys are dropped first, and their events may be recorded again.
const MOST_KEYS = 10_000;

/** Records events as client-go's EventRecorder: `record` returns at once and never throws. Failed ones are repeated. */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #log: Logger;
  readonly #guard: WriteGuard;
  readonly #waiting = new Set<Pending>();
  /** Failed events, until they are sent again. */
  readonly #backingOff: KeyedTimers<Pending>;
  readonly #inFlight = new Map<Pending, Promise<void>>();
  /** Epoch ms; the oldest first. */
  readonly #recorded = new Map<string, number>();
  readonly #abort = new AbortController();
  /** Runs outside any reconcile's async context: it sends events of other reconciles, too. */
  readonly #pump = AsyncLocalStorage.bind(() => {
    for (const pending of this.#waiting) {
      if (this.#inFlight.size >= CONCURRENCY || this.#abort.signal.aborted) return;
      this.#waiting.delete(pending);
      const sent = this.#send(pending).finally(() => {
        this.#inFlight.delete(pending);
        this.#pump();
      });
      this.#inFlight.set(pending, sent);
    }
  });

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#log = options.log.child({ controller: "events" });
    this.#backingOff = new KeyedTimers(options.clock);
    this.#guard = new WriteGuard({ clock: options.clock, forgetFailureMs: GIVE_UP_AFTER_MS });
  }

  /** The event counts as recorded even if the API server refuses it later. */
  record(
    object: ObjectReference,
    { reason, message, seeAlso, type = "Warning", suffix = randomBytes(8).toString("hex"), ...once }: NewEvent,
  ): void {
    const { dedupe, mayExist = false } = once;
    if (this.#abort.signal.aborted || (dedupe !== undefined && this.isRecorded(dedupe))) return;
    const { clock, source } = this.#options;
    const event = makeEvent(object, { reason, message, seeAlso, type, suffix, at: clock.wall() }, source);
    if (this.#waiting.size + this.#backingOff.size + this.#inFlight.size >= MOST_PENDING) {
      this.#log.warn(wordsOf(event), "an event is dropped: too many others are pending");
      return;
    }
    if (dedupe !== undefined) this.#remember(dedupe);
    this.#waiting.add({ event, mayExist, since: clock.now(), backoff: new Backoff(BACKOFF) });
    this.#pump();
  }

  /** Reports whether an event with this key was recorded within fifty minutes. */
  isRecorded(dedupe: string): boolean {
    return isReadable(this.#recorded.get(dedupe), this.#options.clock.now());
  }

  /** Records nothing more, and resolves when no request is in flight. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error("stopped"));
    this.#waiting.clear();
    this.#backingOff.stop();
    await Promise.all(this.#inFlight.values());
  }

  #remember(dedupe: string): void {
    for (const oldest of this.#recorded.keys()) {
      if (this.#recorded.size < MOST_KEYS && this.isRecorded(oldest)) break;
      this.#recorded.delete(oldest);
    }
    this.#recorded.delete(dedupe);
    this.#recorded.set(dedupe, this.#options.clock.now());
  }

  async #send(pending: Pending): Promise<void> {
    const { client } = this.#options;
    const { event, mayExist } = pending;
    const { signal } = this.#abort;
    try {
      if (mayExist && (await patchEvent(client, event.metadata, {}, signal))) return;
      await createEvent(client, event, signal);
    } catch (error) {
      if (!signal.aborted) this.#failed(pending, error);
    }
  }

  #failed(pending: Pending, error: unknown): void {
    // An earlier leader created it, or an attempt whose answer was lost.
    if (isKubeError(error, "AlreadyExists")) return;
    const { clock } = this.#options;
    const words = wordsOf(pending.event);
    if (!isKubeError(error)) {
      this.#log.error({ ...words, err: error }, "an event is dropped");
      return;
    }
    const { retryAfterMs = 0 } = error;
    // NotFound: the event's namespace is gone.
    const isRefused =
      isKubeError(error, "NotFound") ||
      (isRefusal(error) && this.#guard.failed("events", "create", error) !== "transient");
    if (isRefused || clock.now() >= pending.since + GIVE_UP_AFTER_MS) {
      this.#log[isRefused ? "info" : "warn"]({ ...words, code: error.code }, `an event is dropped: ${error.message}`);
      return;
    }
    this.#backingOff.start(pending, Math.max(pending.backoff.next(), retryAfterMs), () => {
      this.#waiting.add(pending);
      this.#pump();
    });
  }
}

function wordsOf({ involvedObject, reason, message }: KubeEvent): object {
  const { kind, namespace, name, uid } = involvedObject;
  return { kind, object: `${namespace}/${name}`, uid, reason, told: message };
}
