import type { ClusterClient } from "../kube/client.ts";
import type { Clock, Timer } from "../runtime/clock.ts";

export interface ProbeSettings {
  readonly periodMs: number;
  readonly timeoutMs: number;
  /** Failures in a row until the member counts as not reachable. */
  readonly failureThreshold: number;
}

/** What a probe found, from the member itself: never a constant. */
export interface ProbeResult {
  readonly reachable: boolean;
  /** It has not answered yet, and not failed so often that it counts as lost; absent: it has done one of them. */
  readonly undecided?: true;
  /** Why the last probe failed; absent: it did not. */
  readonly message?: string;
  /** `gitVersion` of the member, once it was seen. */
  readonly version?: string;
}

// One of several servers that is being stopped says so for as long as it still serves: the member is ready all the same.
const READY_PATH = "/readyz?exclude=shutdown";
// Requests that failed ask for an earlier probe, but not more often than this.
const HURRIED_PERIOD_MS = 1_000;
// A control plane of several servers is upgraded without ever being away.
const VERSION_AGAIN_MS = 300_000;
// It is written to the virtual node and shown to people: what looks otherwise is none.
const VERSION = /^[\w.+-]{1,64}$/;

/**
 * Asks a member's `/readyz` at a steady pace. One success makes it reachable; `failureThreshold` failures in a row, also
 * the first ones of all, make it not so. `hurry` moves the next probe forward when requests to the member begin to fail.
 */
export class Probe {
  readonly #client: ClusterClient;
  readonly #settings: () => ProbeSettings;
  readonly #clock: Clock;
  readonly #onResult: (result: ProbeResult) => void;
  readonly #abort = new AbortController();
  #timer: Timer | undefined;
  #failures = 0;
  #reachable = false;
  #undecided = true;
  #version: string | undefined;
  #versionReadMs = Number.NEGATIVE_INFINITY;
  #probing = false;
  #lastStartMs = Number.NEGATIVE_INFINITY;

  constructor(options: {
    readonly client: ClusterClient;
    readonly settings: () => ProbeSettings;
    readonly clock: Clock;
    readonly onResult: (result: ProbeResult) => void;
  }) {
    this.#client = options.client;
    this.#settings = options.settings;
    this.#clock = options.clock;
    this.#onResult = options.onResult;
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#abort.abort();
    this.#timer?.cancel();
  }

  /** A request to the member has failed or timed out: look sooner than planned. */
  hurry(): void {
    if (this.#probing || this.#abort.signal.aborted) return;
    const earliest = this.#lastStartMs + HURRIED_PERIOD_MS;
    this.#plan(Math.max(0, earliest - this.#clock.now()));
  }

  #plan(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(delayMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    const { periodMs, timeoutMs, failureThreshold } = this.#settings();
    const { signal } = this.#abort;
    this.#probing = true;
    this.#lastStartMs = this.#clock.now();
    let message: string | undefined;
    try {
      await this.#client.raw({ method: "GET", path: READY_PATH, timeoutMs, signal, outOfTurn: true });
      if (!this.#reachable || this.#version === undefined) this.#version = await this.#readVersion(timeoutMs);
      else if (this.#clock.now() >= this.#versionReadMs + VERSION_AGAIN_MS) await this.#rereadVersion(timeoutMs);
    } catch (error) {
      message = error instanceof Error ? error.message : String(error);
    }
    this.#probing = false;
    if (signal.aborted) return;
    this.#failures = message === undefined ? 0 : this.#failures + 1;
    if (message === undefined) this.#reachable = true;
    else if (this.#failures >= failureThreshold) this.#reachable = false;
    if (message === undefined || this.#failures >= failureThreshold) this.#undecided = false;
    this.#onResult({
      reachable: this.#reachable,
      ...(this.#undecided ? { undecided: true as const } : {}),
      ...(message === undefined ? {} : { message }),
      ...(this.#version === undefined ? {} : { version: this.#version }),
    });
    // While it fails, the threshold is reached at the probe's own pace but without the idle time between.
    const failing = message !== undefined && (this.#reachable || this.#undecided);
    this.#plan(failing ? Math.min(periodMs, HURRIED_PERIOD_MS) : periodMs);
  }

  /** What is known stays when it cannot be read: the member is ready all the same. */
  async #rereadVersion(timeoutMs: number): Promise<void> {
    this.#versionReadMs = this.#clock.now();
    const version = await this.#readVersion(timeoutMs).catch(() => undefined);
    this.#version = version ?? this.#version;
  }

  async #readVersion(timeoutMs: number): Promise<string | undefined> {
    const { signal } = this.#abort;
    const answer = await this.#client.raw({ method: "GET", path: "/version", timeoutMs, signal, outOfTurn: true });
    this.#versionReadMs = this.#clock.now();
    if (typeof answer !== "object" || answer === null || !("gitVersion" in answer)) return undefined;
    return typeof answer.gitVersion === "string" && VERSION.test(answer.gitVersion) ? answer.gitVersion : undefined;
  }
}
