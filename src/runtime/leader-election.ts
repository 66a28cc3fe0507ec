import { hostname } from "node:os";
import type { ClusterClient, RequestOptions } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Lease, ObjectMeta, Stored } from "../kube/objects.ts";
import { leases } from "../kube/resources.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Clock } from "./clock.ts";
import { addLeaderlessInterval, type Interval, parseLeaderlessIntervals, renewedAt } from "./leaderless-intervals.ts";

export interface LeaderElectorOptions {
  /** A client of its own, so that renewals never queue behind the controllers' requests. */
  readonly client: ClusterClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique per process; default: host name and a random suffix. */
  readonly identity?: string;
  /** Milliseconds that followers wait after the last renewal they saw before they take over. */
  readonly leaseDurationMs?: number;
  /** The leader gives up when no renewal has succeeded for this long. */
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
  /** Annotation of the Lease that records the intervals without a leader. Default: they are not recorded. */
  readonly leaderlessAnnotation?: string;
  /** Annotations of the Lease while this process holds it, and after; undefined removes one. Default: none. */
  readonly annotations?: Readonly<Record<string, string | undefined>>;
  /** Asked before a free Lease is taken. Default: yes. */
  readonly mayTake?: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onStartedLeading: () => void;
  /** A clean stop releases the lease only after this resolves, so it must end all writes. `leftMs` is 0 by then. */
  readonly onStoppedLeading: () => void | Promise<void>;
}

interface Moment {
  readonly now: number;
  readonly wall: number;
}

interface Observation {
  readonly version: string;
  readonly seenAt: number;
  /** Milliseconds that its holder may lead from `seenAt` on. */
  readonly heldMs: number;
}

// Followers count from when they see a renewal, which is after the leader sent it. The margin covers clock rates that
// differ, and a write in flight.
const SAFETY_MARGIN_MS = 1_000;

// Enough for a conflict, a lost response and a success. Each attempt gets its share of the renew deadline.
const RELEASE_ATTEMPTS = 3;

/** Returns a name that no other process has. */
export function uniqueIdentity(): string {
  return `${hostname()}_${crypto.randomUUID()}`;
}

/** Leader election on a Lease, as client-go's. Trusts no remote clock: a lease expires after its whole duration. */
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
  /** A renewal met a conflict, and the Lease was not read since. */
  #doubted = false;
  /** A write of the Lease was sent and may have succeeded. */
  #mayHold = false;

  constructor(options: LeaderElectorOptions) {
    this.#options = options;
    this.identity = options.identity ?? uniqueIdentity();
    this.#durationMs = options.leaseDurationMs ?? 15_000;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryMs = options.retryPeriodMs ?? 2_000;
    if (this.#retryMs >= this.#renewDeadlineMs || this.#renewDeadlineMs >= this.#durationMs - SAFETY_MARGIN_MS) {
      throw new RangeError("retryPeriodMs must be less than renewDeadlineMs, and that less than leaseDurationMs - 1 s");
    }
  }

  /** The intervals without a leader that the Lease records. */
  get leaderless(): readonly Interval[] {
    return parseLeaderlessIntervals(this.#noted(this.#lease));
  }

  get isLeader(): boolean {
    return (this.leftMs() ?? 0) > 0;
  }

  /** Milliseconds that this leader may still write, by when its last renewal was sent. Undefined until it leads. */
  leftMs(): number | undefined {
    if (this.#phase === "following") return undefined;
    if (this.#phase === "finished" || this.#doubted) return 0;
    const { now, wall } = this.#moment();
    const passedMs = Math.max(now - this.#renewedAt.now, wall - this.#renewedAt.wall);
    return this.#durationMs - SAFETY_MARGIN_MS - passedMs;
  }

  /** False when another process leads, or etcd was restored: then absence of an object proves nothing. */
  async confirm(signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name } = this.#options;
    const found = await client.find(leases, { namespace, name }, { signal });
    return found?.spec?.holderIdentity === this.identity && !this.#hasGoneBack(found);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async finished(): Promise<void> {
    await this.#running;
  }

  /** Stops leading, then releases the lease so that a follower takes over at once. */
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
      // After a conflict, read the Lease at once: until its holder is known, this process must not write.
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
      // Jitter, so that followers do not all write at the same moment.
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
      // A write may still be in flight, so the lease must expire instead of being released.
      log.error({ err, identity: this.identity }, "leading did not end cleanly");
      return;
    }
    if (signal.aborted) await this.#release();
  }

  /** Tries to acquire or renew. `held`: ours and renewed; `taken`: another's; `unknown`: no clear answer. */
  async #attempt(signal: AbortSignal): Promise<"held" | "taken" | "unknown"> {
    const { client, clock, log, namespace, name } = this.#options;
    const leading = this.#phase === "leading";
    // A leader's attempt must end before the renew deadline, and one hung request must leave time for a second.
    const leftMs = leading ? this.#renewedAt.now + this.#renewDeadlineMs - clock.now() : this.#renewDeadlineMs;
    const options = { timeoutMs: Math.max(1, Math.min(leftMs, this.#renewDeadlineMs / 2)), signal };
    try {
      if (this.#lease === undefined) {
        const found = await client.find(leases, { namespace, name }, options);
        // The holder of a deleted Lease may not have noticed yet.
        if (found === undefined && !leading && !(this.#isOver() && this.#mayTake)) return "taken";
        if (found === undefined) {
          const sentAt = this.#moment();
          this.#mayHold = true;
          this.#held(await client.create(leases, this.#record(undefined), options), sentAt);
          return "held";
        }
        this.#see(found);
        // This includes a Lease that another process held and released meanwhile: this leader's stores may be stale.
        if (leading && found.spec?.holderIdentity !== this.identity) return "taken";
        if (!this.#isOver() || !(leading || this.#mayTake)) return "taken";
        if (leading && this.#hasGoneBack(found)) {
          log.error({ identity: this.identity }, "the Lease is older than its last renewal: restored from a backup");
          return "taken";
        }
        this.#lease = found;
        this.#doubted = false;
      }
      const leaderless = leading ? undefined : await this.#leaderlessBefore(this.#lease, options);
      const sentAt = this.#moment();
      this.#mayHold = true;
      this.#held(await client.replace(leases, this.#record(this.#lease, leaderless), options), sentAt);
      return "held";
    } catch (error) {
      // Read again before the next attempt: another process, or our own write with a lost response, changed it.
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

  /** Returns the leaderless annotation for a takeover, by the API server's clock, which a dry-run write reveals. */
  async #leaderlessBefore(lease: Stored<Lease>, options: RequestOptions): Promise<string | undefined> {
    const { leaderlessAnnotation, annotations = {} } = this.#options;
    const before = lease.metadata.annotations ?? {};
    // Holders with other annotations held other Leases: this one does not tell when they led.
    const isOthers = Object.entries(annotations).some(([key, value]) => before[key] !== value);
    if (leaderlessAnnotation === undefined || isOthers) return undefined;
    const tried = await this.#options.client.replace(leases, this.#record(lease), { ...options, dryRun: true });
    return addLeaderlessInterval(lease, this.#noted(lease), renewedAt(tried));
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

  #isOver(): boolean {
    const { seenAt = 0, heldMs = 0 } = this.#observed ?? {};
    return this.#options.clock.now() >= seenAt + heldMs;
  }

  /** Reports whether the Lease is older than the last renewal: etcd was restored, and this leader's stores are invalid. */
  #hasGoneBack({ spec }: Stored<Lease>): boolean {
    return Date.parse(spec?.renewTime ?? "") < this.#renewedAt.wall;
  }

  #record(previous: Stored<Lease> | undefined, leaderless?: string): Lease {
    const { namespace, name, clock } = this.#options;
    const now = microTime(clock.wall());
    const ours = previous?.spec?.holderIdentity === this.identity;
    const transitions = previous?.spec?.leaseTransitions ?? 0;
    return {
      ...previous,
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: this.#annotated(previous?.metadata ?? { namespace, name }, leaderless),
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

  get #mayTake(): boolean {
    return this.#options.mayTake?.() ?? true;
  }

  #noted(lease: Stored<Lease> | undefined): string | undefined {
    return lease?.metadata.annotations?.[this.#options.leaderlessAnnotation ?? ""];
  }

  /** Adds the annotation to the takeover write itself, so that no crash separates the two. */
  #annotated<Metadata extends ObjectMeta>(metadata: Metadata, leaderless: string | undefined): Metadata {
    const { leaderlessAnnotation = "", annotations: own = {} } = this.#options;
    const noted = leaderless === undefined ? {} : { [leaderlessAnnotation]: leaderless };
    const all = Object.entries({ ...metadata.annotations, ...noted, ...own });
    const kept = all.filter((entry): entry is [string, string] => entry[1] !== undefined);
    return all.length === 0 ? metadata : { ...metadata, annotations: Object.fromEntries(kept) };
  }

  async #release(): Promise<void> {
    const { log } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#giveAway();
        return;
      } catch (error) {
        // Read again: a renewal that the stop aborted may have succeeded late.
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

/** Formats RFC 3339 with six decimals, the only form that the API server accepts for a MicroTime. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
