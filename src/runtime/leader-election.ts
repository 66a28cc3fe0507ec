import { hostname } from "node:os";
import type { Lease, Stored } from "../api/kubernetes.ts";
import type { ClusterClient, RequestOptions } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import { leases } from "../kube/resources.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Clock } from "./clock.ts";
import { type Interval, noteUnled, renewedAt, UNLED_ANNOTATION, unledIn } from "./unled.ts";

/** Which Lease, under which name, and what to do on winning or losing it. */
export interface LeaderElectorOptions {
  /** Best a client of its own: renewals must not queue behind the controllers' requests. */
  readonly client: ClusterClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique per process; default: host name and a random suffix. */
  readonly identity?: string;
  /** How long others wait after the last renewal they saw before they take over. */
  readonly leaseDurationMs?: number;
  /** The leader gives up when no renewal has succeeded for this long. */
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onStartedLeading: () => void;
  /**
   * Called once, when leading ends for whatever reason; nothing is left of the lease by then. A clean stop releases the lease
   * only after this has resolved, so it must end all writing.
   */
  readonly onStoppedLeading: () => void | Promise<void>;
}

/** One moment, by a clock that nobody sets and by the machine's. */
interface Moment {
  readonly now: number;
  readonly wall: number;
}

/** What was seen of the Lease, and when. */
interface Observation {
  readonly version: string;
  readonly seenAt: number;
  /** How long nobody else may lead from then on. */
  readonly heldMs: number;
}

// Followers measure the lease from when they see a renewal, which is after the leader sent it: the margin is for clocks
// that run at different speeds, and for a write that takes a moment to arrive.
const SAFETY_MARGIN_MS = 1_000;

// A conflict and a lost answer, and then one that succeeds. Each request may take its share of the renew deadline.
const RELEASE_ATTEMPTS = 3;

/** Identity for a process that is not given one. */
function defaultIdentity(): string {
  return `${hostname()}_${crypto.randomUUID()}`;
}

/**
 * Leader election on a coordination.k8s.io Lease, as client-go does it and interoperable with it. Remote clocks are never
 * trusted: a lease counts as expired when *this* process has not seen it change for its whole duration.
 */
export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly identity: string;
  readonly #durationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryMs: number;
  readonly #abort = new AbortController();
  #running: Promise<void> | undefined;
  #observed: Observation | undefined;
  /** The Lease as last read or written; its resourceVersion guards the next write. */
  #lease: Stored<Lease> | undefined;
  #phase: "following" | "leading" | "finished" = "following";
  /** When the last successful renewal was sent. */
  #renewedAt: Moment = { now: 0, wall: 0 };
  /** A renewal was refused because somebody has written the Lease, which has not been read since. */
  #doubted = false;
  /** A write of the Lease was sent, and may have been done. */
  #mayHold = false;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.identity = options.identity ?? defaultIdentity();
    this.#durationMs = options.leaseDurationMs ?? 15_000;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
    if (this.#retryMs >= this.#renewDeadlineMs || this.#renewDeadlineMs >= this.#durationMs - SAFETY_MARGIN_MS) {
      throw new RangeError("retryPeriodMs must be less than renewDeadlineMs, and that less than leaseDurationMs - 1 s");
    }
  }

  /** The times in which, by what the Lease tells, nobody led. */
  get unled(): readonly Interval[] {
    return unledIn(this.#lease?.metadata.annotations?.[UNLED_ANNOTATION]);
  }

  get isLeader(): boolean {
    return (this.leftMs() ?? 0) > 0;
  }

  /**
   * How long writes of this leader are still safe: counted from just before the last successful renewal was *sent*, so it
   * ends before anyone else can hold the lease. Undefined until this process first leads; nothing when it has stopped, so
   * that a client with this as its limit refuses every further write. Nothing, too, while somebody else may lead by what was
   * heard last. Whichever clock says that more time has passed is believed: the machine's may have been set back, and the other
   * one stands still while the machine is suspended. Where both stood still, only the Lease tells.
   */
  leftMs(): number | undefined {
    if (this.#phase === "following") return undefined;
    if (this.#phase === "finished" || this.#doubted) return 0;
    const { now, wall } = this.#moment();
    const passedMs = Math.max(now - this.#renewedAt.now, wall - this.#renewedAt.wall);
    return this.#durationMs - SAFETY_MARGIN_MS - passedMs;
  }

  /**
   * Asks the host whether it still has the last renewal. False when it was set back to a backup, or another leads: what it is
   * said to have lacked before this was asked may be what it has forgotten. Rejects when it does not answer.
   */
  async confirm(signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name } = this.#options;
    const found = await client.find(leases, { namespace, name }, { signal });
    return found?.spec?.holderIdentity === this.identity && !this.#hasGoneBack(found);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when this process has lost or given up the lease, or was stopped before it had it. */
  async finished(): Promise<void> {
    await this.#running;
  }

  /** Stops leading, then gives the lease away so that another takes over at once. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error("leader election was stopped"));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, log, onStartedLeading } = this.#options;
    const { signal } = this.#abort;
    while (!signal.aborted) {
      const knew = !this.#doubted;
      let outcome = await this.#attempt(signal);
      // Who has written the Lease is asked at once: until that is known, nothing else is written.
      if (knew && this.#doubted && !signal.aborted) outcome = await this.#attempt(signal);
      if (outcome === "held" && this.#phase === "following") {
        this.#phase = "leading";
        log.info({ identity: this.identity }, "leading");
        onStartedLeading();
      }
      const overdue = clock.now() - this.#renewedAt.now >= this.#renewDeadlineMs;
      if (this.#phase === "leading" && (outcome === "taken" || (outcome === "unknown" && overdue))) {
        log.error({ identity: this.identity, outcome }, "lost the lease");
        break;
      }
      // Spread, so that followers do not all write at the same moment.
      const waitMs = this.#phase === "leading" ? this.#retryMs : this.#retryMs * (0.75 + Math.random() / 2);
      await clock.sleep(waitMs, signal).catch(() => {});
    }
    if (this.#phase !== "leading") {
      if (signal.aborted && this.#mayHold) await this.#release();
      return;
    }
    this.#phase = "finished";
    try {
      await this.#options.onStoppedLeading();
    } catch (err) {
      // Something may still be writing: nobody else may lead before the lease has run out.
      log.error({ err, identity: this.identity }, "leading did not end cleanly");
      return;
    }
    if (signal.aborted) await this.#release();
  }

  /** `held`: ours and renewed; `taken`: someone else's; `unknown`: the server did not say. */
  async #attempt(signal: AbortSignal): Promise<"held" | "taken" | "unknown"> {
    const { client, clock, log, namespace, name } = this.#options;
    const leading = this.#phase === "leading";
    // As leader, an attempt must be over before the renew deadline is; and one hung request must leave time for another.
    const leftMs = leading ? this.#renewedAt.now + this.#renewDeadlineMs - clock.now() : this.#renewDeadlineMs;
    const options = { timeoutMs: Math.max(1, Math.min(leftMs, this.#renewDeadlineMs / 2)), signal };
    try {
      if (this.#lease === undefined) {
        const found = await client.find(leases, { namespace, name }, options);
        // Whoever held one that was deleted may not know it yet.
        if (found === undefined && !leading && !this.#isOver()) return "taken";
        if (found === undefined) {
          const sentAt = this.#moment();
          this.#mayHold = true;
          this.#held(await client.create(leases, this.#record(undefined), options), sentAt);
          return "held";
        }
        this.#see(found);
        // Also one that another has held and given away: what this leader knows is of before.
        if (leading && found.spec?.holderIdentity !== this.identity) return "taken";
        if (!this.#isOver()) return "taken";
        if (leading && this.#hasGoneBack(found)) {
          log.error({ identity: this.identity }, "the Lease is older than its last renewal: restored from a backup");
          return "taken";
        }
        this.#lease = found;
        this.#doubted = false;
      }
      const unled = leading ? undefined : await this.#unledBefore(this.#lease, options);
      const sentAt = this.#moment();
      this.#mayHold = true;
      this.#held(await client.replace(leases, this.#record(this.#lease, unled), options), sentAt);
      return "held";
    } catch (error) {
      // Read again before the next attempt: someone else, or our own lost answer, has changed it.
      this.#lease = undefined;
      if (isKubeError(error, "Conflict", "AlreadyExists")) {
        this.#mayHold = false;
        this.#doubted = leading;
      } else if (!signal.aborted) {
        log.warn({ err: error, identity: this.identity }, "lease not renewed");
      }
      return "unknown";
    }
  }

  /**
   * What whoever takes the Lease over has to note, by the API server's clock from end to end: a write that is only tried tells
   * what time it is there.
   */
  async #unledBefore(lease: Stored<Lease>, options: RequestOptions): Promise<string | undefined> {
    const tried = await this.#options.client.replace(leases, this.#record(lease), { ...options, dryRun: true });
    return noteUnled(lease, renewedAt(tried));
  }

  #moment(): Moment {
    const { clock } = this.#options;
    return { now: clock.now(), wall: clock.wall() };
  }

  #held(lease: Stored<Lease>, sentAt: Moment): void {
    this.#lease = lease;
    this.#renewedAt = sentAt;
    this.#doubted = false;
  }

  #see({ metadata: { resourceVersion: version }, spec }: Stored<Lease>): void {
    if (this.#observed?.version === version) return;
    const holder = spec?.holderIdentity ?? "";
    const isFree = holder === "" || holder === this.identity;
    // The holder's own duration counts: it may run with other settings.
    const heldMs = isFree ? 0 : Math.max(this.#durationMs, (spec?.leaseDurationSeconds ?? 0) * 1000);
    this.#observed = { version, seenAt: this.#options.clock.now(), heldMs };
  }

  /** Whoever held what was seen last does so no more. */
  #isOver(): boolean {
    const { seenAt = 0, heldMs = 0 } = this.#observed ?? {};
    return this.#options.clock.now() >= seenAt + heldMs;
  }

  /** What this leader has read since then is of a state that the host does not remember, so it must not go on with it. */
  #hasGoneBack({ spec }: Stored<Lease>): boolean {
    return Date.parse(spec?.renewTime ?? "") < this.#renewedAt.wall;
  }

  #record(previous: Stored<Lease> | undefined, unled?: string): Lease {
    const { namespace, name, clock } = this.#options;
    const now = microTime(clock.wall());
    const ours = previous?.spec?.holderIdentity === this.identity;
    const transitions = previous?.spec?.leaseTransitions ?? 0;
    return {
      ...previous,
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: previous === undefined ? { namespace, name } : withUnled(previous, unled),
      spec: {
        ...previous?.spec,
        holderIdentity: this.identity,
        leaseDurationSeconds: Math.ceil(this.#durationMs / 1000),
        acquireTime: ours ? (previous?.spec?.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: previous === undefined || ours ? transitions : transitions + 1,
      },
    };
  }

  async #release(): Promise<void> {
    const { log } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#giveAway();
        return;
      } catch (error) {
        // Read again: a renewal that the stop cut may have been done only now.
        this.#lease = undefined;
        if (attempt < RELEASE_ATTEMPTS) continue;
        log.warn({ err: error, identity: this.identity }, "lease not released; others wait until it expires");
        return;
      }
    }
  }

  async #giveAway(): Promise<void> {
    const { client, clock, namespace, name } = this.#options;
    const options = { timeoutMs: this.#renewDeadlineMs / RELEASE_ATTEMPTS };
    const lease = this.#lease ?? (await client.find(leases, { namespace, name }, options));
    if (lease?.spec?.holderIdentity !== this.identity) return;
    const record = this.#record(lease);
    const spec = { ...record.spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: microTime(clock.wall()) };
    await client.replace(leases, { ...record, spec }, options);
  }
}

/** In the write that takes the lease over, so that no crash comes in between. */
function withUnled({ metadata }: Stored<Lease>, unled: string | undefined): Stored<Lease>["metadata"] {
  if (unled === undefined) return metadata;
  return { ...metadata, annotations: { ...metadata.annotations, [UNLED_ANNOTATION]: unled } };
}

/** RFC 3339 with exactly six decimals, the only form that the API server takes for a MicroTime. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
