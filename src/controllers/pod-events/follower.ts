import { defined } from "../../api/defined.ts";
import type { KubeEvent, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, KubeError } from "../../kube/errors.ts";
import { LIST_TIMEOUT_MS, PAGE_SIZE } from "../../kube/list.ts";
import { events } from "../../kube/resources.ts";
import { ConnectionBackoff } from "../../runtime/backoff.ts";
import { InterruptibleSleep } from "../../runtime/clock.ts";
import type { ControllerOptions } from "../../runtime/controller.ts";
import { rolledBackTo } from "../../runtime/resource-version.ts";
import { observedAt } from "./mirror.ts";

// API servers send no bookmarks for events, which have no watch cache: a quiet watch is silent for long.
const WATCH_SECONDS = { least: 240, spread: 120 };
const BACKOFF = { initialMs: 500, maxMs: 60_000, healthyMs: 10_000 };
// A list holds an hour of the past. Events of this long before it are passed on again: they may have happened between two watches or
// leaders, by clocks that differ.
const OVERLAP_MS = 60_000;

export interface FollowerOptions extends ControllerOptions {
  readonly client: ClusterClient;
  readonly fieldSelector: string;
  /** `isNew`: created while it was watched. An event of a list may have been passed on before, by an earlier leader, too. */
  readonly onEvent: (event: Stored<KubeEvent>, isNew: boolean) => void;
}

/** Follows a cluster's events without a store: they are many, and only new ones matter. */
export class EventFollower {
  readonly #options: FollowerOptions;
  readonly #backoff: ConnectionBackoff;
  readonly #abort = new AbortController();
  readonly #pause: InterruptibleSleep;
  #running: Promise<void> | undefined;
  #version: string | undefined;
  /** The server may have been restored since. */
  #doubted = false;
  /** Earlier events have been passed on; epoch ms. */
  #mirroredUntil: number;
  #lastProblem: string | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#backoff = new ConnectionBackoff({ ...BACKOFF, clock: options.clock });
    this.#pause = new InterruptibleSleep(options.clock);
    this.#mirroredUntil = options.clock.wall();
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error("no longer followed"));
    await this.#running;
  }

  retry(): void {
    this.#pause.end();
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      let delayMs: number;
      try {
        if (this.#doubted && this.#version !== undefined) await this.#confirm(this.#version, signal);
        this.#version ??= await this.#list(signal);
        await this.#watch(this.#version, signal);
        this.#mirroredUntil = this.#options.clock.wall();
        delayMs = this.#backoff.ended();
      } catch (error) {
        if (signal.aborted) return;
        delayMs = this.#failed(error);
      }
      if (delayMs > 0) await this.#pause.wait(delayMs, signal);
    }
  }

  async #confirm(version: string, signal: AbortSignal): Promise<void> {
    const { client, fieldSelector } = this.#options;
    if ((await rolledBackTo(client, events, version, { fieldSelector, signal })) !== undefined)
      this.#version = undefined;
    this.#doubted = false;
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { client, fieldSelector, clock } = this.#options;
    const since = this.#mirroredUntil - OVERLAP_MS;
    const begunAt = clock.wall();
    let token: string | undefined;
    for (;;) {
      const page = await client.list(events, {
        fieldSelector,
        limit: PAGE_SIZE,
        timeoutMs: LIST_TIMEOUT_MS,
        dropManagedFields: true,
        signal,
        ...defined({ continue: token }),
      });
      for (const event of page.items) if (observedAt(event) >= since) this.#tell(event, false);
      token = page.continue;
      if (token !== undefined) continue;
      this.#mirroredUntil = begunAt;
      return page.resourceVersion;
    }
  }

  async #watch(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const { client, fieldSelector, clock } = this.#options;
    const watch = client.watch(events, {
      resourceVersion,
      fieldSelector,
      dropManagedFields: true,
      timeoutSeconds: WATCH_SECONDS.least + Math.floor(Math.random() * WATCH_SECONDS.spread),
      onOpen: () => {
        this.#backoff.working();
        this.#lastProblem = undefined;
      },
      signal,
    });
    for await (const event of watch) {
      if (event.type === "BOOKMARK") {
        this.#version = event.resourceVersion;
        continue;
      }
      this.#version = event.object.metadata.resourceVersion;
      this.#mirroredUntil = clock.wall();
      // Events expire an hour after they last happened.
      if (event.type !== "DELETED") this.#tell(event.object, event.type === "ADDED");
    }
  }

  #tell(event: Stored<KubeEvent>, isNew: boolean): void {
    try {
      this.#options.onEvent(event, isNew);
    } catch (err) {
      const { namespace, name } = event.metadata;
      this.#options.log.error({ err, namespace, name }, "event handler failed");
    }
  }

  #failed(error: unknown): number {
    const { log } = this.#options;
    // After a lost connection the watch continues at its version; any other failure needs a list. A server that was away may come back
    // with an older state, and a watch at its former version would stay silent.
    if (!isKubeError(error, "AnswerLost", "TooManyRequests")) this.#version = undefined;
    this.#doubted = this.#version !== undefined;
    const delayMs = Math.max(this.#backoff.ended(), error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0);
    const message = error instanceof Error ? error.message : String(error);
    // Logged once, not with each attempt of a member that is away.
    if (message !== this.#lastProblem && !isKubeError(error, "Gone")) {
      log.warn(
        { delayMs: Math.round(delayMs), ...(isKubeError(error) ? { code: error.code } : { err: error }) },
        message,
      );
    }
    this.#lastProblem = message;
    return delayMs;
  }
}
