import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PREFERENCES_ANNOTATION, virtualNodeName } from "../../../../src/api/keys.ts";
import { type Namespace, objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import type { PlacementDefaults } from "../../../../src/api/placement-defaults.ts";
import { DelegateRequests } from "../../../../src/clusters/delegate-requests.ts";
import { decide } from "../../../../src/controllers/preferences/decide.ts";
import type { Candidate } from "../../../../src/placement/candidate.ts";
import { divide } from "../../../../src/placement/division.ts";
import { rank } from "../../../../src/placement/rank.ts";
import { memberOf } from "../../../../src/pods/proxy.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { PLACEMENT_INDEXES } from "../../../../src/scheduling/known-pods.ts";
import { PlacementState } from "../../../../src/scheduling/placement-state.ts";
import type { PlacementMember } from "../../../../src/scheduling/pod-rules.ts";
import { proxyPod } from "../../../support/builders/pod.ts";

const NAMES = ["west", "east", "south"];
const REQUESTS = { pods: 1 };
const ALL = { rebalance: true, clusters: { "*": { weight: 1, minReplicas: 0 } } };
const NOW = 1_000;

/** The state of a member. */
interface State {
  readonly closed: boolean;
  readonly late: boolean;
  /** Pods that its Cluster allows this host. */
  readonly limit: number;
  /** Pods that its nodes take. */
  readonly room: number;
  /** None of its nodes takes pods. */
  readonly renewed: boolean;
}

const WELL: State = { closed: false, late: false, limit: 1000, room: 1000, renewed: false };

class ChurnMember implements PlacementMember {
  readonly name: string;
  readonly read = true;
  readonly syncing = false;
  readonly roomVersion = "";
  readonly requests = new DelegateRequests();
  state = WELL;

  constructor(name: string) {
    this.name = name;
  }

  candidate(): Candidate {
    const { closed, late, limit, room, renewed } = this.state;
    const size = { pods: room };
    const none = {
      nodes: 1,
      selected: 0,
      tolerated: 0,
      largest: {},
      large: false,
      against: new Map([["cordoned", 1]]),
    };
    return {
      name: this.name,
      labels: {},
      allocatable: size,
      largestNode: size,
      used: this.requests.used,
      limits: { total: { pods: limit }, perNamespace: {} },
      ...(closed ? { closed: { reason: "ClusterNotReady", message: "lost" } as const } : {}),
      ...(late ? { overdue: true } : {}),
      ...(renewed ? { nodesFor: () => none } : {}),
    };
  }
}

/** Simulates a ReplicaSet on three members: its pods are placed, evicted, lost and replaced. */
class Churn {
  readonly members = NAMES.map((name) => new ChurnMember(name));
  /** Evictions without a free place at the time of the decision. */
  readonly homeless: string[] = [];
  evictions = 0;
  replicas = 0;
  readonly #proxies = new Store<Pod>(PLACEMENT_INDEXES);
  readonly #namespaces = new Store<Namespace>();
  readonly #placementState: PlacementState;
  #made = 0;

  constructor() {
    const member = (name: string): ChurnMember | undefined => this.members.find((each) => each.name === name);
    this.#namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1" } });
    this.#placementState = new PlacementState({
      classes: undefined,
      registry: { members: () => this.members, member, unconnected: () => [] },
      namespaces: this.#namespaces,
      defaults: new Store<PlacementDefaults>(),
      proxies: this.#proxies,
      homeApi: () => ({ state: "unknown", message: "" }),
      clock: { now: () => NOW },
    });
  }

  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const proxy of this.#proxies.list()) {
      const on = memberOf(proxy) ?? "none";
      counts[on] = (counts[on] ?? 0) + 1;
    }
    return counts;
  }

  /** Runs the ReplicaSet controller, placement and rebalancing once. */
  turn(): void {
    for (let missing = this.replicas - this.#proxies.list().length; missing > 0; missing--) this.#make();
    const surplus = this.#proxies.list().length - this.replicas;
    for (const proxy of this.#proxies.list().slice(0, Math.max(0, surplus))) this.#remove(proxy);
    for (const proxy of this.#proxies.list()) if (memberOf(proxy) === undefined) this.#place(proxy);
    this.#rebalance();
  }

  /** Evicts the pods of a lost member, as Kubernetes does. */
  failOver(name: string): void {
    for (const proxy of this.#proxies.list()) if (memberOf(proxy) === name) this.#remove(proxy);
  }

  #make(): void {
    const name = `web-${this.#made++}`;
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "owner", controller: true };
    const annotations = { [PREFERENCES_ANNOTATION]: JSON.stringify(ALL), "legation.dev/api": "none" };
    const creationTimestamp = new Date(this.#made * 1000).toISOString();
    const metadata = { annotations, ownerReferences: [owner], creationTimestamp };
    this.#show(proxyPod({ name, uid: name, metadata }));
  }

  #place(proxy: Stored<Pod>): void {
    const { rules } = this.#placementState.eligibilities.of(proxy);
    const candidates = this.members.map((member) => member.candidate());
    const { fitting, awaited } = rank({ requests: REQUESTS, rules: rules?.() ?? [], candidates });
    const [best] = fitting;
    const member = this.members.find(({ name }) => name === best);
    if (member === undefined || awaited !== undefined) return;
    const { uid, namespace } = proxy.metadata;
    this.#placementState.reservations.attempt(uid, member.name, { requests: REQUESTS, namespace }, proxy);
    const spec = { containers: [], ...proxy.spec, nodeName: virtualNodeName(member.name) };
    const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    this.#show({ ...proxy, spec, status });
  }

  #rebalance(): void {
    const all = this.#proxies.list();
    const [first] = all;
    const sharing = first === undefined ? undefined : this.#placementState.eligibilities.sharing(first);
    if (sharing === undefined) return;
    const bound = all.filter((proxy) => memberOf(proxy) !== undefined);
    const replicas = bound.map((proxy) => ({
      uid: proxy.metadata.uid,
      key: objectKey(proxy.metadata),
      member: memberOf(proxy) ?? "",
      ready: true,
      resourceVersion: "1",
      costed: false,
      createdAt: proxy.metadata.creationTimestamp ?? "",
    }));
    const { actions } = decide(
      {
        ...sharing,
        key: "team/web",
        movable: true,
        replicas,
        waiting: all.length - bound.length,
        requests: REQUESTS,
        heldMoves: {},
      },
      NOW,
    );
    for (const { requests, name, state: now } of this.members) {
      const coming = actions.filter((action) => action.type === "evict" && action.to === name).length;
      const open = !now.closed && !now.late && !now.renewed;
      const places = open ? Math.min(now.limit, now.room) - (requests.used.pods ?? 0) : 0;
      if (coming > Math.max(0, places)) this.homeless.push(`${coming} for ${places} in ${name}`);
    }
    for (const action of actions) {
      if (action.type !== "evict") continue;
      this.evictions += 1;
      const proxy = this.#proxies.get(action.key);
      if (proxy !== undefined) this.#remove(proxy);
    }
  }

  #show(proxy: Stored<Pod>): void {
    this.#proxies.set(proxy);
    this.#placementState.update(proxy);
  }

  #remove(proxy: Stored<Pod>): void {
    for (const { requests } of this.members) requests.release(proxy.metadata.uid);
    this.#proxies.delete(objectKey(proxy.metadata));
    this.#placementState.remove(proxy);
  }
}

const state = fc.record({
  closed: fc.boolean(),
  late: fc.boolean(),
  limit: fc.integer({ min: 0, max: 20 }),
  room: fc.integer({ min: 0, max: 30 }),
  renewed: fc.boolean(),
});
const event = fc.record({
  member: fc.nat({ max: NAMES.length - 1 }),
  state: fc.oneof({ weight: 2, arbitrary: state }, { weight: 1, arbitrary: fc.constant(WELL) }),
  failedOver: fc.boolean(),
  replicas: fc.integer({ min: 1, max: 24 }),
  turns: fc.integer({ min: 1, max: 5 }),
});

describe("members that are lost, late, full, at their limit and healthy again", () => {
  test("lose no pod without a free place for it, and end divided", () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 1, maxLength: 12 }), (events) => {
        const churn = new Churn();
        for (const { member, state: now, failedOver, replicas, turns } of events) {
          const struck = churn.members[member];
          if (struck !== undefined) struck.state = now;
          if (struck?.state.closed === true && failedOver) churn.failOver(struck.name);
          churn.replicas = replicas;
          for (let turn = 0; turn < turns; turn++) churn.turn();
        }
        expect(churn.homeless).toEqual([]);

        for (const member of churn.members) member.state = WELL;
        churn.evictions = 0;
        for (let turn = 0; turn < 40; turn++) churn.turn();
        const { replicas: ideal } = divide({
          total: churn.replicas,
          preferences: ALL,
          clusters: NAMES,
          key: "team/web",
        });
        const counts = churn.counts();
        expect(Object.fromEntries(NAMES.map((name) => [name, counts[name] ?? 0]))).toEqual(ideal);
        // None moves twice.
        expect(churn.evictions).toBeLessThanOrEqual(churn.replicas);
        churn.evictions = 0;
        for (let turn = 0; turn < 5; turn++) churn.turn();
        expect(churn.evictions).toBe(0);
      }),
      { numRuns: 150 },
    );
  });

  test.each<[string, Partial<State>]>([
    ["is at its limit", { limit: 4 }],
    ["exceeds its limit", { limit: 2 }],
    ["has its nodes renewed", { renewed: true }],
    ["is late", { late: true }],
    ["is full", { room: 4 }],
  ])("keep their pods while one of them %s", (_, parts) => {
    const churn = new Churn();
    churn.replicas = 12;
    for (let turn = 0; turn < 3; turn++) churn.turn();
    expect(churn.counts()).toEqual({ west: 4, east: 4, south: 4 });
    const [west] = churn.members;
    if (west !== undefined) west.state = { ...WELL, ...parts };
    for (let turn = 0; turn < 10; turn++) churn.turn();
    expect(churn.evictions).toBe(0);
    churn.replicas = 18;
    for (let turn = 0; turn < 10; turn++) churn.turn();
    expect(churn.evictions).toBe(0);
    expect(churn.counts().west ?? 0).toBeGreaterThanOrEqual(4);
  });
});
