import { CLUSTER_DEFAULTS, type Cluster } from "../api/cluster.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError, WayPending } from "../kube/errors.ts";
import { isJsonObject } from "../kube/json.ts";
import type { Clock, Timer } from "../runtime/clock.ts";

export interface ProbeSettings {
  readonly periodMs: number;
  readonly timeoutMs: number;
  /** Consecutive failures after which the member counts as unreachable. */
  readonly failureThreshold: number;
}

export function probeSettingsOf({ spec }: Pick<Cluster, "spec">): ProbeSettings {
  const { periodSeconds, timeoutSeconds, failureThreshold } = { ...CLUSTER_DEFAULTS.probe, ...spec.probe };
  return { periodMs: periodSeconds * 1000, timeoutMs: timeoutSeconds * 1000, failureThreshold };
}

export interface ProbeResult {
  readonly reachable: boolean;
  /** The member has not answered yet, nor failed often enough to count as unreachable. */
  readonly undecided?: true | undefined;
  /** The failure of the last probe; absent after a success. */
  readonly message?: string | undefined;
  /** The member's `gitVersion`, once read. */
  readonly version?: string | undefined;
}

// A server of several that shuts down still serves for a while, so the member is ready.
const READY_PATH = "/readyz?exclude=shutdown";
// Shortest interval of probes that failed requests trigger.
const HURRIED_PERIOD_MS = 1_000;
// A control plane of several servers is upgraded without downtime.
const VERSION_AGAIN_MS = 300_000;
// A member may send events although it is about to shut down.
const MOST_SKIPPED_MS = 60_000;
// A watch whose connection was merely cut reopens within this time.
const CUT_MS = 3_000;
// The version is written to the virtual node, so anything else counts as none.
const VERSION = /^[\w.+-]{1,64}$/;

interface ProbeOptions {
  readonly client: ClusterClient;
  readonly settings: () => ProbeSettings;
  readonly clock: Clock;
  /** Returns when the member last sent an event of an object, which its etcd had stored; epoch ms. */
  readonly heardAt: () => number;
  /** Sends a request of the member that is due and proves as much as `/readyz`. Undefined when none is due. */
  readonly due: (timeoutMs: number) => Promise<void> | undefined;
  readonly onResult: (result: ProbeResult) => void;
}

/** Probes a member's `/readyz`. One success makes it reachable, `failureThreshold` failures in a row unreachable. */
export class Probe {
  readonly #options: ProbeOptions;
  readonly #abort = new AbortController();
  #timer: Timer | undefined;
  #failures = 0;
  #reachable = false;
  #undecided = true;
  #version: string | undefined;
  #versionReadMs = Number.NEGATIVE_INFINITY;
  #probing = false;
  #lastStartMs = Number.NEGATIVE_INFINITY;

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  start(): void {
    if (!this.#probing) void this.#run();
  }

  stop(): void {
    this.#abort.abort();
    this.#timer?.cancel();
  }

  hurry(): void {
    if (this.#probing || this.#abort.signal.aborted) return;
    const earliest = this.#lastStartMs + HURRIED_PERIOD_MS;
    this.#plan(Math.max(0, earliest - this.#options.clock.now()));
  }

  #plan(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(delayMs, () => void this.#run());
  }

  async #run(): Promise<void> {
    const { clock, settings, due, onResult } = this.#options;
    const { periodMs, timeoutMs, failureThreshold } = settings();
    const { signal } = this.#abort;
    this.#probing = true;
    this.#lastStartMs = clock.now();
    let message: string | undefined;
    let failed = 0;
    try {
      await ((this.#reachable ? due(timeoutMs) : undefined) ?? this.#read(READY_PATH, timeoutMs));
      if (!this.#reachable || this.#version === undefined) this.#version = await this.#readVersion(timeoutMs);
      else if (clock.now() >= this.#versionReadMs + VERSION_AGAIN_MS) await this.#rereadVersion(timeoutMs);
    } catch (error) {
      message = wordsOf(error);
      // The agent of a member connects to a new leader within seconds, and until then says nothing of the member.
      failed = isKubeError(error) && error.cause instanceof WayPending ? 0 : 1;
    }
    this.#probing = false;
    if (signal.aborted) return;
    this.#failures = message === undefined ? 0 : this.#failures + failed;
    if (message === undefined) this.#reachable = true;
    else if (this.#failures >= failureThreshold) this.#reachable = false;
    if (message === undefined || this.#failures >= failureThreshold) this.#undecided = false;
    onResult({
      reachable: this.#reachable,
      undecided: this.#undecided || undefined,
      message,
      version: this.#version,
    });
    // Failed probes follow each other without the idle time, until the threshold is reached.
    const failing = message !== undefined && (this.#reachable || this.#undecided);
    if (failing) this.#plan(Math.min(periodMs, HURRIED_PERIOD_MS));
    else this.#planUnlessHeard(periodMs, periodMs);
  }

  /** Leaves the probe out while the member's events prove that it answers. */
  #planUnlessHeard(periodMs: number, delayMs: number): void {
    const { clock, heardAt } = this.#options;
    this.#timer?.cancel();
    this.#timer = clock.after(delayMs, () => {
      const quietMs = clock.now() - heardAt();
      const isProven = quietMs < periodMs && clock.now() < this.#lastStartMs + MOST_SKIPPED_MS;
      if (isProven) this.#planUnlessHeard(periodMs, periodMs - quietMs);
      else void this.#run();
    });
  }

  /** Keeps the known version on failure, since the member is ready. */
  async #rereadVersion(timeoutMs: number): Promise<void> {
    this.#versionReadMs = this.#options.clock.now();
    const version = await this.#readVersion(timeoutMs).catch(() => undefined);
    this.#version = version ?? this.#version;
  }

  async #readVersion(timeoutMs: number): Promise<string | undefined> {
    const answer = await this.#read("/version", timeoutMs);
    this.#versionReadMs = this.#options.clock.now();
    const version = isJsonObject(answer) ? answer.gitVersion : undefined;
    return typeof version === "string" && VERSION.test(version) ? version : undefined;
  }

  #read(path: string, timeoutMs: number): Promise<unknown> {
    const { signal } = this.#abort;
    return this.#options.client.raw({ method: "GET", path, timeoutMs, signal, outOfTurn: true });
  }
}

/** Says what is wrong with a member to people who see its name beside, and do not know which of its paths are read. */
function wordsOf(error: unknown): string {
  if (isKubeError(error)) return error.detail;
  return error instanceof Error ? error.message : String(error);
}

/** Tracks since when a member is reachable. Cuts that end soon do not count. */
export class Reachability {
  readonly #clock: Pick<Clock, "now">;
  #reachable = false;
  #since = 0;
  #lostAt: number | undefined;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** When the member last became reachable, apart from brief cuts; epoch ms. */
  get since(): number {
    return this.#since;
  }

  /** Returns true when the member became reachable. */
  note(reachable: boolean): boolean {
    const now = this.#clock.now();
    const became = reachable && !this.#reachable;
    if (this.#reachable && !reachable) this.#lostAt = now;
    this.#reachable = reachable;
    if (became && (this.#lostAt === undefined || now - this.#lostAt >= CUT_MS)) this.#since = now;
    return became;
  }
}
