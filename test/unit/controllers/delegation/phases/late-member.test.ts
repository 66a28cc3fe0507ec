import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../../../src/api/kubernetes.ts";
import type { SchedulingPreferences } from "../../../../../src/api/preferences.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { Divisions } from "../../../../../src/scheduling/divisions.ts";
import { Memories } from "../../../../../src/scheduling/memories.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { member, type TestMember, world } from "../world.ts";

const CREATED = "2026-01-01T00:00:00Z";
const created = Date.parse(CREATED);
const preferences: SchedulingPreferences = {
  rebalance: false,
  clusters: { west: { weight: 2, minReplicas: 0 }, east: { weight: 1, minReplicas: 0 } },
};

/** A burst of pods of one ReplicaSet, while `west` is late or not. */
class Burst {
  readonly divisions = new Divisions();
  readonly memories = new Memories({ now: () => 0 }, (uid, name) => this.divisions.proxies.place(uid, name));
  readonly created: Record<string, number> = {};
  #left: Stored<Pod>[];
  readonly #divided: boolean;

  constructor(replicas: number, divided = true) {
    const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", uid: "owner", controller: true };
    this.#divided = divided;
    this.#left = Array.from({ length: replicas }, (_, index) =>
      proxyPod({
        name: `web-${index}`,
        uid: `uid-${index}`,
        metadata: { creationTimestamp: CREATED, ownerReferences: [owner] },
      }),
    );
    for (const proxy of this.#left) this.divisions.update(proxy);
  }

  /** Decides for each waiting pod. Returns the earliest requeue time. */
  decide(now: number, west: { readonly overdue?: boolean; readonly closed?: boolean } = {}): number | undefined {
    const { overdue = false, closed = false } = west;
    const members = [member("west"), member("east")].map((view): TestMember => {
      if (view.name !== "west") return view;
      const reason = { reason: "ClusterNotReady", message: "lost" } as const;
      return { ...view, candidate: { ...view.candidate, overdue, ...(closed ? { closed: reason } : {}) } };
    });
    const times: number[] = [];
    this.#left = this.#left.filter((proxy) => {
      const { uid } = proxy.metadata;
      const open = members.map(({ candidate }) => candidate).filter((candidate) => candidate.closed === undefined);
      const rules = this.#divided ? { rules: () => [this.divisions.rule(proxy, preferences, open)] } : {};
      const { actions, requeueAt } = decide(world(proxy, members, { memory: this.memories.of(uid), ...rules }), now);
      if (requeueAt !== undefined) times.push(requeueAt);
      for (const action of actions) {
        if (action.type === "reserve") this.memories.noteReserved(uid, action.member);
        if (action.type !== "create") continue;
        this.memories.noteAttempt(uid, action.member, now);
        this.created[action.member] = (this.created[action.member] ?? 0) + 1;
        return false;
      }
      return true;
    });
    return times.length === 0 ? undefined : Math.min(...times);
  }
}

describe("a member whose API server is late", () => {
  test("keeps its share of a divided workload for a moment, and holds up no other share", () => {
    const burst = new Burst(12);
    expect(burst.decide(created, { overdue: true })).toBe(created + 10_000);
    expect(burst.created).toEqual({ east: 4 });
    burst.decide(created + 5000, { overdue: true });
    expect(burst.created).toEqual({ east: 4 });
    burst.decide(created + 9000);
    expect(burst.created).toEqual({ west: 8, east: 4 });
  });

  test("loses its share when it stays late, or is lost", () => {
    const late = new Burst(12);
    late.decide(created, { overdue: true });
    late.decide(created + 10_000, { overdue: true });
    expect(late.created).toEqual({ east: 12 });
    const lost = new Burst(12);
    lost.decide(created, { overdue: true });
    lost.decide(created + 4000, { closed: true });
    expect(lost.created).toEqual({ east: 12 });
  });

  test("is not waited for by pods that are not divided", () => {
    const burst = new Burst(12, false);
    burst.decide(created, { overdue: true });
    expect(burst.created).toEqual({ east: 12 });
  });

  test("gets divided pods if no other member takes them", () => {
    const burst = new Burst(2);
    const west = member("west");
    const overdue = { ...west, candidate: { ...west.candidate, overdue: true } };
    const proxy = proxyPod({ metadata: { creationTimestamp: CREATED } });
    const rules = (): ReturnType<Divisions["rule"]>[] => [
      burst.divisions.rule(proxy, preferences, [overdue.candidate]),
    ];
    const { actions } = decide(world(proxy, [overdue], { rules }), created);
    expect(actions).toEqual([expect.objectContaining({ type: "create", member: "west" })]);
  });
});
