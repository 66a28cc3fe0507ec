import { DELETION_COST_ANNOTATION, virtualNodeName } from "../../../src/api/keys.ts";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { SchedulingPreferences } from "../../../src/api/preferences.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import type { Replicas } from "../../../src/placement/division.ts";
import { rank } from "../../../src/placement/rank.ts";
import { memberOf } from "../../../src/pods/proxy.ts";
import { Divisions } from "../../../src/scheduling/divisions.ts";
import { proxyPod } from "../builders/pod.ts";

/** A Deployment and its update strategy. */
export interface DeploymentParts {
  readonly preferences: SchedulingPreferences;
  readonly clusters: readonly string[];
  readonly replicas: number;
  readonly maxSurge: number;
  readonly maxUnavailable: number;
  /** Chooses the next event, from 0 to 1. */
  readonly random: () => number;
  /** Replicas are ready as soon as they have a place. */
  readonly ready?: boolean;
}

interface ReplicaSet {
  readonly hash: string;
  wanted: number;
  readonly pods: Map<string, Stored<Pod>>;
  /** Pods without a member. */
  readonly waiting: Stored<Pod>[];
}

/**
 * Simulates a Deployment and its ReplicaSets with Legation's division. Placing, readiness and reconciles come in any
 * order.
 */
export class SimulatedDeployment {
  /** Live replicas by cluster after each change. */
  readonly moments: { readonly placed: Replicas; readonly what: string }[] = [];
  replicas: number;
  readonly #parts: DeploymentParts;
  readonly #divisions = new Divisions();
  readonly #sets: ReplicaSet[] = [];
  readonly #candidates: readonly Candidate[];
  readonly #placed: Record<string, number> = {};
  #current = -1;
  #made = 0;

  constructor(parts: DeploymentParts) {
    const allocatable = { pods: 1_000_000 };
    this.#parts = parts;
    this.replicas = parts.replicas;
    this.#candidates = parts.clusters.map((name) => {
      return { name, labels: {}, allocatable, largestNode: allocatable, used: {} };
    });
    this.update();
    this.settle();
    this.moments.length = 0;
  }

  /** Live replicas of the newest ReplicaSet by cluster. */
  get newest(): Replicas {
    return this.#countsOf(this.#set());
  }

  /** A change of its template. */
  update(): void {
    this.#sets.push({ hash: `h${this.#sets.length}`, wanted: 0, pods: new Map(), waiting: [] });
    this.#current = this.#sets.length - 1;
  }

  /** The template before the last is its template again. */
  rollBack(): void {
    this.#current -= 1;
  }

  /** Another number of replicas; while it is updated, each ReplicaSet gets its part. */
  scale(replicas: number): void {
    const { maxSurge } = this.#parts;
    const all = this.#wanted();
    let left = replicas - this.replicas;
    this.replicas = replicas;
    const alone = this.#sets.filter(({ wanted }) => wanted > 0).length <= 1;
    if (alone || all === 0) return;
    for (const set of [...this.#sets].sort((a, b) => b.wanted - a.wanted)) {
      const part = Math.round((set.wanted * (replicas + maxSurge)) / all) - set.wanted;
      const change = left > 0 ? Math.max(0, Math.min(left, part)) : Math.min(0, Math.max(left, part));
      left -= change;
      this.#resize(set, set.wanted + change);
    }
  }

  /** Lets things happen until nothing more does, or so many times. */
  settle(times: number = Number.POSITIVE_INFINITY): void {
    for (let time = 0; time < times && !this.#settled(); time++) {
      if (time > 100_000) throw new Error("it never comes to rest");
      this.#happen();
    }
  }

  #happen(): void {
    const { random } = this.#parts;
    const waiting = this.#sets.filter((set) => set.waiting.length > 0);
    const unready = this.#sets.flatMap((set) => [...set.pods.values()].filter((pod) => !isReady(pod)));
    const may: (() => void)[] = [() => this.#synchronise()];
    const set = waiting[Math.floor(random() * waiting.length)];
    if (set !== undefined) may.push(() => this.#place(set));
    if (unready.length > 0) may.push(() => this.#makeReady(random() < 0.3 ? unready : one(unready, random)));
    one(may, random)[0]?.();
  }

  /** Runs the Deployment controller once: the new ReplicaSet grows, or old ones shrink. */
  #synchronise(): void {
    const { maxSurge, maxUnavailable } = this.#parts;
    const current = this.#set();
    const more = Math.min(this.replicas + maxSurge - this.#wanted(), this.replicas - current.wanted);
    if (current.wanted > this.replicas || more > 0) {
      this.#resize(current, Math.min(this.replicas, current.wanted + Math.max(0, more)));
      return;
    }
    const old = this.#sets.filter((set) => set !== current);
    const available = (set: ReplicaSet): number => [...set.pods.values()].filter(isReady).length;
    const least = this.replicas - maxUnavailable;
    // Unready pods go first.
    let left = this.#wanted() - least - (current.wanted - available(current));
    for (const set of old) {
      const gone = Math.max(0, Math.min(left, set.wanted - available(set)));
      left -= gone;
      this.#resize(set, set.wanted - gone);
    }
    left = this.#sets.reduce((sum, set) => sum + available(set), 0) - least;
    for (const set of old) {
      const gone = Math.max(0, Math.min(left, set.wanted));
      left -= gone;
      this.#resize(set, set.wanted - gone);
    }
  }

  #resize(set: ReplicaSet, wanted: number): void {
    for (; set.wanted < wanted; set.wanted++) {
      const name = `web-${set.hash}-${this.#made++}`;
      const owner = {
        apiVersion: "apps/v1",
        kind: "ReplicaSet",
        name: `web-${set.hash}`,
        uid: set.hash,
        controller: true,
      };
      const labels = { "pod-template-hash": set.hash };
      const proxy = proxyPod({ name, uid: name, metadata: { labels, ownerReferences: [owner] } });
      set.waiting.push(proxy);
      this.#divisions.update(proxy);
    }
    for (; set.wanted > wanted; set.wanted--) {
      const [next] = [...set.pods.values()].sort(
        (a, b) => Number(isReady(a)) - Number(isReady(b)) || costOf(a) - costOf(b),
      );
      const gone = set.waiting.pop() ?? next;
      if (gone === undefined) throw new Error("there is none to end");
      set.pods.delete(gone.metadata.uid);
      this.#divisions.remove(gone);
      if (gone === next) this.#note(`${gone.metadata.name} ended`, memberOf(gone) ?? "", -1);
    }
  }

  #place(set: ReplicaSet): void {
    const proxy = set.waiting.shift();
    if (proxy === undefined) return;
    const rules = [this.#divisions.rule(proxy, this.#parts.preferences, this.#candidates)];
    const [cluster] = rank({ requests: { pods: 1 }, rules, candidates: this.#candidates }).fitting;
    if (cluster === undefined) throw new Error(`${proxy.metadata.name} has no place`);
    const { uid } = proxy.metadata;
    this.#divisions.proxies.place(uid, cluster);
    const annotations = this.#divisions.costAnnotations(uid);
    const bound = {
      ...proxy,
      metadata: { ...proxy.metadata, annotations },
      spec: { containers: [], nodeName: virtualNodeName(cluster) },
    };
    set.pods.set(uid, bound);
    this.#divisions.update(bound);
    if (this.#parts.ready === true) this.#makeReady([bound]);
    this.#note(`${proxy.metadata.name} went to ${cluster}`, cluster, 1);
  }

  #makeReady(pods: readonly Stored<Pod>[]): void {
    for (const pod of pods) {
      const ready = { ...pod, status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } };
      this.#sets.find((set) => set.pods.has(pod.metadata.uid))?.pods.set(pod.metadata.uid, ready);
      this.#divisions.update(ready);
    }
  }

  #note(what: string, cluster: string, change: number): void {
    this.#placed[cluster] = (this.#placed[cluster] ?? 0) + change;
    this.moments.push({ placed: { ...this.#placed }, what });
  }

  #countsOf({ pods }: ReplicaSet): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const pod of pods.values()) {
      const cluster = memberOf(pod) ?? "";
      counts[cluster] = (counts[cluster] ?? 0) + 1;
    }
    return counts;
  }

  #wanted(): number {
    return this.#sets.reduce((sum, { wanted }) => sum + wanted, 0);
  }

  #set(): ReplicaSet {
    const set = this.#sets[this.#current];
    if (set === undefined) throw new Error("there is no such ReplicaSet");
    return set;
  }

  #settled(): boolean {
    const current = this.#set();
    return this.#sets.every((set) => {
      const has = set.waiting.length === 0 && [...set.pods.values()].every(isReady);
      return has && set.wanted === (set === current ? this.replicas : 0);
    });
  }
}

function one<T>(of: readonly T[], random: () => number): readonly T[] {
  return of.slice(Math.floor(random() * of.length)).slice(0, 1);
}

function isReady({ status }: Pod): boolean {
  return status?.phase === "Running";
}

function costOf({ metadata }: Stored<Pod>): number {
  return Number(metadata.annotations?.[DELETION_COST_ANNOTATION] ?? 0);
}
