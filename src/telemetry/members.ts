import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** A member at this moment. */
export interface MemberState {
  readonly name: string;
  /** Its API server answers and its watches are up to date. */
  readonly reachable: boolean;
  /** Delegates that this host has there, ended ones too. */
  readonly delegates: number;
  /** Proxies that are bound to its virtual node. */
  readonly proxies: number;
}

/** What is asked of the controllers at each scrape. */
export interface StateSource {
  members(): Iterable<MemberState>;
  /** Proxies without a member, gated ones not among them: how many, and for how long the first has waited. */
  waiting(): { readonly count: number; readonly oldestSeconds: number };
}

/**
 * - `delegate`: from the proxy's coming (its last scheduling gate gone) to its first delegate
 * - `bind`: from the delegate's creation to the proxy's binding, most of it the member's scheduler's
 * - `status`: from the member's news of a delegate to the proxy's status
 */
export type Stage = "delegate" | "bind" | "status";

const STAGE_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** What becomes of pods, by member and never by pod: there are as many series as members. */
export class MemberMetrics {
  readonly #stages: Histogram<"stage" | "cluster">;
  readonly #orphans: Counter<"cluster">;
  readonly #held: Counter<"cluster">;
  readonly #streams: Gauge<"cluster">;
  readonly #credentials: Gauge<"cluster">;
  #source: StateSource | undefined;

  constructor(registry: Registry) {
    const registers = [registry];
    const labelNames = ["cluster"] as const;
    const state = (): StateSource | undefined => this.#source;
    // A rate needs a value before the first one, and a panel a zero.
    function startAtZero(this: { inc(labels: { cluster: string }, by: number): void }): void {
      for (const { name } of state()?.members() ?? []) this.inc({ cluster: name }, 0);
    }
    this.#stages = new Histogram({
      name: "legation_pod_stage_duration_seconds",
      help: "How long each stage of a pod's way took: delegate, bind, status",
      labelNames: ["stage", "cluster"],
      buckets: STAGE_BUCKETS,
      registers,
    });
    this.#orphans = new Counter({
      name: "legation_orphans_total",
      help: "Delegates that were found without their proxy, and deleted",
      labelNames,
      registers,
      collect: startAtZero,
    });
    this.#held = new Counter({
      name: "legation_delegates_held_total",
      help: "Delegates that are kept though their proxies are gone, since the host was restored from a backup",
      labelNames,
      registers,
      collect: startAtZero,
    });
    this.#streams = new Gauge({
      name: "legation_streams_open",
      help: "exec, attach and port-forward under way",
      labelNames,
      registers,
      collect: startAtZero,
    });
    this.#credentials = new Gauge({
      name: "legation_member_credentials_expiration_timestamp_seconds",
      help: "When the token that a member is reached with ends, in seconds since the epoch",
      labelNames,
      registers,
    });
    const ofMembers = (name: string, help: string, read: (member: MemberState) => number): void => {
      new Gauge({
        name,
        help,
        labelNames,
        registers,
        collect(): void {
          // A member that has left must not be shown as it was.
          this.reset();
          for (const member of state()?.members() ?? []) this.set({ cluster: member.name }, read(member));
        },
      });
    };
    ofMembers("legation_member_reachable", "1 while the member answers and its watches are up to date", (member) =>
      member.reachable ? 1 : 0,
    );
    ofMembers("legation_delegates", "Delegates in the member", ({ delegates }) => delegates);
    ofMembers("legation_proxies", "Proxies that are bound to the member", ({ proxies }) => proxies);
    new Gauge({
      name: "legation_proxies_waiting",
      help: "Proxies that no member has taken yet",
      registers,
      collect(): void {
        this.set(state()?.waiting().count ?? 0);
      },
    });
    new Gauge({
      name: "legation_proxies_waiting_oldest_seconds",
      help: "How long the proxy that has waited longest has no member",
      registers,
      collect(): void {
        this.set(state()?.waiting().oldestSeconds ?? 0);
      },
    });
  }

  /** Asks this at each scrape from now on; undefined: nobody, for this process does not lead. */
  follow(source: StateSource | undefined): void {
    this.#source = source;
  }

  observeStage(stage: Stage, cluster: string, seconds: number): void {
    this.#stages.observe({ stage, cluster }, Math.max(0, seconds));
  }

  countOrphan(cluster: string): void {
    this.#orphans.inc({ cluster });
  }

  countHeld(cluster: string): void {
    this.#held.inc({ cluster });
  }

  /** A stream was opened (1) or has ended (-1). */
  countStream(cluster: string, change: 1 | -1): void {
    this.#streams.inc({ cluster }, change);
  }

  /** When a member's token ends, epoch ms; undefined: it has none, or has left. */
  setCredentialsExpiry(cluster: string, expiresAt: number | undefined): void {
    if (expiresAt === undefined) this.#credentials.remove({ cluster });
    else this.#credentials.set({ cluster }, expiresAt / 1000);
  }
}
