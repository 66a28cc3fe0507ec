import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { metricsPerCluster } from "./per-cluster.ts";

export interface MemberState {
  readonly name: string;
  /** The member's API server answers and its watches are current. */
  readonly reachable: boolean;
  /** The endpoints of other clusters lead there. Undefined: the member is in no network. */
  readonly joined: boolean | undefined;
  /** How long, in total, it was late to answer or answered nothing. */
  readonly unresponsiveSeconds: number;
  /** This host's delegates in the member, including finished ones. */
  readonly delegates: number;
  /** Proxies bound to the member's virtual node. */
  readonly proxies: number;
}

/** The state that each scrape reads from the controllers. */
export interface StateSource {
  members(): Iterable<MemberState>;
  /** Returns the number of ungated proxies without a member, and how long the oldest has waited. */
  waiting(): { readonly count: number; readonly oldestSeconds: number };
}

/**
 * Stages of a pod's latency:
 * - `delegate`: from the proxy's creation (or its last scheduling gate) to its first delegate
 * - `bind`: from the delegate's creation to the proxy's binding, mostly the member's scheduler
 * - `status`: from the watch event of a delegate to the proxy's status write
 */
export type Stage = "delegate" | "bind" | "status";

const STAGE_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Pod outcomes by member. Never labelled by pod, to bound cardinality. */
export class MemberMetrics {
  readonly #stages: Histogram<"stage" | "cluster">;
  readonly #orphans: Counter<"cluster">;
  readonly #held: Counter<"cluster">;
  readonly #streams: Gauge<"cluster">;
  readonly #credentials: Gauge<"cluster">;
  /** The members of each shard that this process leads. */
  readonly #sources = new Set<StateSource>();

  constructor(registry: Registry) {
    const registers = [registry];
    const labelNames = ["cluster"] as const;
    const sources = this.#sources;
    const states = (): Iterable<MemberState> => together([...sources].flatMap((source) => [...source.members()]));
    // `rate()` needs a sample before the first increment.
    function startAtZero(this: { inc(labels: { cluster: string }, by: number): void }): void {
      for (const { name } of states()) this.inc({ cluster: name }, 0);
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
    const { gauge, counter } = metricsPerCluster(registry, states);
    gauge("legation_member_reachable", "1 while the member answers and its watches are up to date", ({ reachable }) =>
      reachable ? 1 : 0,
    );
    gauge(
      "legation_member_network_joined",
      "1 while the member has the endpoints of other clusters in its network, 0 while it is left out",
      ({ joined }) => (joined === undefined ? undefined : Number(joined)),
    );
    counter(
      "legation_member_unresponsive_seconds_total",
      "How long the member was late to answer or answered nothing, so that other members were preferred",
      ({ unresponsiveSeconds }) => unresponsiveSeconds,
    );
    gauge("legation_delegates", "Delegates in the member", ({ delegates }) => delegates);
    gauge("legation_proxies", "Proxies that are bound to the member", ({ proxies }) => proxies);
    new Gauge({
      name: "legation_proxies_waiting",
      help: "Proxies that no member has taken yet",
      registers,
      collect(): void {
        this.set([...sources].reduce((sum, source) => sum + source.waiting().count, 0));
      },
    });
    new Gauge({
      name: "legation_proxies_waiting_oldest_seconds",
      help: "How long the proxy that has waited longest has no member",
      registers,
      collect(): void {
        this.set(Math.max(0, ...[...sources].map((source) => source.waiting().oldestSeconds)));
      },
    });
  }

  /** Reads `source` at each scrape, until the returned function is called. */
  follow(source: StateSource): () => void {
    this.#sources.add(source);
    return () => void this.#sources.delete(source);
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

  /** Counts an opened (1) or ended (-1) stream. */
  countStream(cluster: string, change: 1 | -1): void {
    this.#streams.inc({ cluster }, change);
  }

  /** Sets when a member's token expires; epoch ms. Undefined when it has none, or has left. */
  setCredentialsExpiry(cluster: string, expiresAt: number | undefined): void {
    if (expiresAt === undefined) this.#credentials.remove({ cluster });
    else this.#credentials.set({ cluster }, expiresAt / 1000);
  }
}

/** Adds up what the shards of this process have in each member. */
function together(states: readonly MemberState[]): Iterable<MemberState> {
  const members = new Map<string, MemberState>();
  for (const state of states) {
    const { delegates = 0, proxies = 0 } = members.get(state.name) ?? {};
    const sums = { delegates: delegates + state.delegates, proxies: proxies + state.proxies };
    members.set(state.name, { ...state, ...members.get(state.name), ...sums });
  }
  return members.values();
}
