import { type KubeEvent, type ObjectKey, objectKey } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { Backoff } from "../../runtime/backoff.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import { createEvent, patchEvent } from "../../runtime/event-requests.ts";
import { recurrence, recurs } from "./mirror.ts";
import { EventQueue, type Pending } from "./queue.ts";
import { SpamFilter } from "./spam-filter.ts";

export type EventOutcome = "created" | "updated" | "known" | "limited" | "overflowed" | "refused" | "failed";

// Few, so that events take few slots of a busy API server. At 10 ms a response these are 800 per second.
const CONCURRENCY = 8;
const ATTEMPTS = 5;
const BACKOFF = { initialMs: 200, maxMs: 10_000 };

/** Writes events to the host, those of one pod one after another, so that watchers see them in order. */
export class EventWriter {
  readonly #options: WriterOptions;
  readonly #filter = new SpamFilter();
  readonly #queue = new EventQueue();
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #backoff = new Backoff(BACKOFF);
  readonly #abort = new AbortController();
  #paused = false;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Replaces the event's earlier state if that still waits. */
  write(member: string, event: KubeEvent, isNew: boolean): void {
    const key = objectKey(event.metadata);
    const waiting = this.#queue.get(member, key);
    if (waiting === undefined && !this.#filter.accepts(member, event, this.#options.clock.now())) {
      this.#options.onOutcome?.("limited");
      return;
    }
    this.#enqueue(key, { member, event, isNew: isNew || waiting?.isNew === true, attempts: 0 });
    this.#pump();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error("stopped"));
    this.#queue.clear();
    await Promise.all(this.#underWay.values());
  }

  #enqueue(key: ObjectKey, pending: Pending): void {
    for (let lost = this.#queue.put(key, pending); lost > 0; lost -= 1) this.#options.onOutcome?.("overflowed");
  }

  #pump(): void {
    if (this.#paused || this.#abort.signal.aborted) return;
    while (this.#underWay.size < CONCURRENCY) {
      const next = this.#queue.next(({ event }) => !this.#underWay.has(podOf(event)));
      if (next === undefined) return;
      this.#underWay.set(podOf(next.pending.event), this.#write(next.key, next.pending));
    }
  }

  async #write(key: ObjectKey, pending: Pending): Promise<void> {
    let outcome: EventOutcome | undefined;
    try {
      outcome = await this.#send(pending);
      this.#backoff.reset();
    } catch (error) {
      outcome = this.#failed(key, pending, error);
    }
    this.#underWay.delete(podOf(pending.event));
    if (outcome !== undefined) this.#options.onOutcome?.(outcome);
    this.#pump();
  }

  async #send({ event, isNew }: Pending): Promise<EventOutcome> {
    const { host } = this.#options;
    const { signal } = this.#abort;
    if (isNew) {
      try {
        await createEvent(host, event, signal);
        return "created";
      } catch (error) {
        if (!isKubeError(error, "AlreadyExists")) throw error;
        if (!recurs(event)) return "known";
      }
    }
    const isThere = await patchEvent(host, event.metadata, recurrence(event), signal);
    if (isThere) return recurs(event) ? "updated" : "known";
    // The event expired on the host, was never written, or happened while no controller led.
    await createEvent(host, event, signal);
    return "created";
  }

  #failed(key: ObjectKey, { member, event, isNew, attempts }: Pending, error: unknown): EventOutcome | undefined {
    if (this.#abort.signal.aborted) return undefined;
    const { log, clock } = this.#options;
    const message = error instanceof Error ? error.message : String(error);
    // A terminating namespace takes no events, and the namespace of a deleted proxy may be gone.
    if (isKubeError(error) && error.retryClass === "never" && error.code !== "Conflict") {
      log.debug({ code: error.code, proxy: event.involvedObject?.uid }, message);
      return "refused";
    }
    if (!this.#paused) {
      this.#paused = true;
      const delayMs = this.#backoff.next();
      log.warn({ delayMs: Math.round(delayMs), waiting: this.#queue.size }, message);
      clock.after(delayMs, () => {
        this.#paused = false;
        this.#pump();
      });
    }
    // A host that is away for a moment refused nothing.
    const counted = isKubeError(error, "NotSent") ? attempts : attempts + 1;
    if (counted >= ATTEMPTS) return "failed";
    const newer = this.#queue.get(member, key);
    this.#enqueue(key, {
      member,
      event: newer?.event ?? event,
      isNew: isNew || newer?.isNew === true,
      attempts: counted,
    });
    return undefined;
  }
}

export interface WriterOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly onOutcome?: (outcome: EventOutcome) => void;
}

function podOf({ involvedObject }: KubeEvent): string {
  return involvedObject.uid ?? "";
}
