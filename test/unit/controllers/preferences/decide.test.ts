import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import type { ClusterPreferences } from "../../../../src/api/preferences.ts";
import { decide } from "../../../../src/controllers/preferences/decide.ts";
import type { Action, Observed, Replica } from "../../../../src/controllers/preferences/model.ts";
import type { Candidate } from "../../../../src/placement/candidate.ts";
import type { HeldWrites } from "../../../../src/runtime/held-writes.ts";

const NOW = 1_000;
const held: HeldWrites = { east: { reason: "NoEffect", until: NOW + 1 } };

function candidate(name: string, room = 1000): Candidate {
  const allocatable = { cpu: room, pods: 1000 };
  return { name, labels: {}, allocatable, largestNode: allocatable, used: {} };
}

function replicas(member: string, count: number, parts: (nth: number) => Partial<Replica> = () => ({})): Replica[] {
  return Array.from({ length: count }, (_, nth) => ({
    uid: `${member}-${nth}`,
    key: objectKey({ namespace: "team", name: `${member}-${nth}` }),
    member,
    ready: true,
    resourceVersion: "1",
    costed: false,
    createdAt: `2026-01-01T00:00:${String(nth % 60).padStart(2, "0")}Z`,
    ...parts(nth),
  }));
}

function world(parts: Partial<Observed> & { readonly weights?: Readonly<Record<string, number>> }): Observed {
  const { weights = { west: 1, east: 1 }, ...observed } = parts;
  const clusters: Record<string, ClusterPreferences> = {};
  for (const [name, weight] of Object.entries(weights)) clusters[name] = { weight, minReplicas: 0 };
  return {
    preferences: { rebalance: true, clusters },
    key: "team/web",
    movable: true,
    replicas: [],
    waiting: 0,
    candidates: Object.keys(weights).map((name) => candidate(name)),
    full: new Set(),
    closed: new Set(),
    syncing: false,
    requests: { cpu: 1 },
    heldMoves: {},
    ...observed,
  };
}

function moves(actions: readonly Action[]): string[] {
  return actions.flatMap((action) => (action.type === "evict" ? [`${action.key} ${action.from} ${action.to}`] : []));
}

describe("replicas in a member that their workload excludes", () => {
  const undivided = {
    preferences: { rebalance: false, clusters: { "*": { weight: 1, minReplicas: 0 } } },
    undivided: true,
    candidates: [candidate("east")],
  };
  const excluded = (count: number, ready: (nth: number) => boolean = () => true): Replica[] =>
    replicas("west", count, (nth) => ({ excluded: true, ready: ready(nth) }));
  const leaving = (parts: Partial<Observed>): (string | undefined)[] =>
    decide(world({ ...undivided, ...parts }), NOW).actions.map((action) =>
      action.type === "evict" ? action.uid : action.type,
    );

  test("leave one of ten at a time, whatever the division, and get no deletion costs", () => {
    expect(leaving({ replicas: [...excluded(3), ...replicas("east", 4)] })).toEqual(["west-2"]);
    expect(leaving({ replicas: excluded(20) })).toEqual(["west-19", "west-18"]);
    expect(leaving({ replicas: replicas("east", 4, () => ({ costed: true })) })).toEqual([]);
  });

  test("leave a divided workload without rebalance, which moves no others", () => {
    const preferences = { rebalance: false, clusters: { "*": { weight: 1, minReplicas: 0 } } };
    const candidates = [candidate("east"), candidate("north")];
    const observed = world({ preferences, candidates, replicas: [...excluded(1), ...replicas("east", 6)] });
    expect(moves(decide(observed, NOW).actions)).toEqual(["team/west-0 west north"]);
    const moved = decide({ ...observed, replicas: replicas("east", 6) }, NOW);
    expect(moves(moved.actions)).toEqual([]);
  });

  test("leave before the surplus of other members", () => {
    const observed = world({ replicas: [...replicas("south", 1, () => ({ excluded: true })), ...replicas("west", 5)] });
    expect(moves(decide(observed, NOW).actions)).toEqual(["team/south-0 south east"]);
  });

  test("leave first where they are not ready, and only then wait for replacements", () => {
    expect(leaving({ replicas: excluded(3, (nth) => nth > 0) })).toEqual(["west-0"]);
    const unready = replicas("east", 1, () => ({ ready: false }));
    expect(leaving({ replicas: [...excluded(3), ...unready] })).toEqual([]);
  });

  test.each<[string, Partial<Observed>]>([
    ["no other member has room", { candidates: [candidate("east", 0)] }],
    ["no other member may have them", { candidates: [] }],
    ["their member is lost", { closed: new Set(["west"]) }],
    ["their owner would lose work", { movable: false }],
    ["a replacement has no place yet", { waiting: 1 }],
    ["another ReplicaSet's replicas are not ready", { others: { placed: [], unready: 1, larger: false } }],
  ])("stay while %s", (_, parts) => {
    expect(leaving({ replicas: excluded(3), ...parts })).toEqual([]);
  });
});

describe("rebalancing", () => {
  test("moves the surplus of a member, the youngest first, one of ten at a time", () => {
    const observed = world({ replicas: [...replicas("west", 10), ...replicas("east", 0)] });
    expect(moves(decide(observed, NOW).actions)).toEqual(["team/west-9 west east"]);
    expect(moves(decide(world({ replicas: replicas("west", 30) }), NOW).actions)).toEqual([
      "team/west-29 west east",
      "team/west-28 west east",
      "team/west-27 west east",
    ]);
  });

  const crooked = [...replicas("west", 9), ...replicas("east", 1)];
  test.each<[string, Partial<Observed>]>([
    [
      "its author has not asked for it",
      { preferences: { rebalance: false, clusters: world({}).preferences.clusters } },
    ],
    ["its owner would lose work", { movable: false }],
    ["a replica has no place yet", { waiting: 1 }],
    ["a replica is not ready", { replicas: [...crooked.slice(1), ...replicas("east", 1, () => ({ ready: false }))] }],
    [
      "one of many is not ready",
      { replicas: [...replicas("west", 30), ...replicas("east", 1, () => ({ ready: false }))] },
    ],
    ["a member has still to be read", { syncing: true }],
    ["the other member has no room", { candidates: [candidate("west"), candidate("east", 0)] }],
    ["the other member gets no more", { full: new Set(["east"]) }],
    ["the other member is lost", { candidates: [candidate("west")], closed: new Set(["east"]) }],
    ["the member that has too much is lost", { candidates: [candidate("east")], closed: new Set(["west"]) }],
    ["the other member did not get a moved replica", { heldMoves: held }],
    ["the division is right", { replicas: [...replicas("west", 5), ...replicas("east", 5)] }],
  ])("moves nothing when %s", (_, parts) => {
    expect(decide(world({ replicas: crooked, ...parts }), NOW).actions).toEqual([]);
  });

  describe("while its Deployment or Rollout is updated", () => {
    const others = { placed: [{ east: 6 }], unready: 0, larger: false };
    const own = replicas("west", 9);

    test("moves for all ReplicaSets together, except what the update itself causes", () => {
      const weights = { west: 1, east: 1, south: 1 };
      expect(moves(decide(world({ replicas: own, others }), NOW).actions)).toEqual([]);
      expect(moves(decide(world({ replicas: own, others, weights }), NOW).actions)).toEqual(["team/west-8 west south"]);
    });

    test.each<[string, Record<string, ClusterPreferences>, Record<string, number>]>([
      [
        "maxReplicas",
        { west: { weight: 2, minReplicas: 0, maxReplicas: 6 }, east: { weight: 1, minReplicas: 0 } },
        { west: 6, east: 3 },
      ],
      [
        "minReplicas",
        { west: { weight: 1, minReplicas: 0 }, east: { weight: 0, minReplicas: 4 } },
        { west: 5, east: 4 },
      ],
    ])("moves nothing of two ReplicaSets that are both at full size, each divided by its %s", (_, clusters, placed) => {
      const preferences = { rebalance: true, clusters };
      const both = Object.entries(placed).flatMap(([member, count]) => replicas(member, count));
      const decision = decide(
        world({ preferences, weights: placed, replicas: both, others: { ...others, placed: [placed] } }),
        NOW,
      );
      expect(decision.actions).toEqual([]);
      expect(decision.requeueAt).toBeGreaterThan(NOW);
    });

    test("moves a common surplus by weights, though each ReplicaSet is near its own division", () => {
      const weights = { north: 3, east: 8, south: 1, west: 3 };
      const larger = Object.entries({ north: 4, east: 4, south: 1, west: 4 });
      const observed = world({
        weights,
        replicas: larger.flatMap(([member, count]) => replicas(member, count)),
        others: { ...others, placed: [{ north: 1, east: 2, west: 1 }] },
      });
      expect(moves(decide(observed, NOW).actions)).toEqual(["team/north-3 north east"]);
    });

    test.each<[string, Partial<NonNullable<Observed["others"]>>]>([
      ["another one has more, which moves for all", { larger: true }],
      ["a replica of another one is not ready", { unready: 1 }],
    ])("moves nothing when %s", (_, parts) => {
      const weights = { west: 1, east: 1, south: 1 };
      const decision = decide(world({ replicas: own, others: { ...others, ...parts }, weights }), NOW);
      expect(decision.actions).toEqual([]);
      expect(decision.requeueAt).toBeGreaterThan(NOW);
    });

    test("leaves deletion costs in the order of creation", () => {
      const crooked = replicas("west", 9, (nth) => ({ costed: true, cost: -9 + nth }));
      const balanced = { ...others, placed: [{ east: 9 }] };
      expect(decide(world({ replicas: crooked, others: balanced }), NOW).actions).toEqual([]);
      expect(decide(world({ replicas: crooked }), NOW).actions).not.toEqual([]);
    });
  });

  test("tries a member again after a pause", () => {
    expect(decide(world({ replicas: crooked, heldMoves: held }), NOW).requeueAt).toBe(NOW + 1);
    expect(moves(decide(world({ replicas: crooked, heldMoves: held }), NOW + 1).actions)).toHaveLength(1);
  });

  test("empties a member that the preferences leave out", () => {
    const observed = world({ weights: { east: 1 }, replicas: [...replicas("west", 1), ...replicas("east", 3)] });
    expect(moves(decide(observed, NOW).actions)).toEqual(["team/west-0 west east"]);
  });

  test("ends from any start, and then moves nothing more", () => {
    const start = fc.record({
      west: fc.nat({ max: 30 }),
      east: fc.nat({ max: 30 }),
      south: fc.nat({ max: 30 }),
      weights: fc.record({ west: fc.nat({ max: 5 }), east: fc.integer({ min: 1, max: 5 }), south: fc.nat({ max: 5 }) }),
    });
    fc.assert(
      fc.property(start, ({ weights, ...counts }) => {
        const placed: Record<string, number> = { ...counts };
        const total = counts.west + counts.east + counts.south;
        let steps = 0;
        for (; steps <= total; steps++) {
          const all = Object.entries(placed).flatMap(([member, count]) => replicas(member, count));
          const actions = decide(world({ weights, replicas: all }), NOW).actions.filter(({ type }) => type === "evict");
          if (actions.length === 0) break;
          for (const action of actions) {
            if (action.type !== "evict" || action.to === undefined) continue;
            placed[action.from] = (placed[action.from] ?? 0) - 1;
            placed[action.to] = (placed[action.to] ?? 0) + 1;
          }
        }
        expect(steps).toBeLessThanOrEqual(total);
        const weightsOfAll = weights.west + weights.east + weights.south;
        for (const name of ["west", "east", "south"] as const) {
          expect(Math.abs((placed[name] ?? 0) - (total * weights[name]) / weightsOfAll)).toBeLessThan(1);
        }
      }),
    );
  });
});

describe("deletion costs", () => {
  const still = {
    preferences: { rebalance: false, clusters: world({ weights: { west: 2, east: 1 } }).preferences.clusters },
  };

  /** Applies decisions until there are none, as the stores would show it. */
  function written(observed: Observed): { readonly replicas: readonly Replica[]; readonly writes: number } {
    let writes = 0;
    let current = observed.replicas;
    for (;;) {
      const { actions } = decide({ ...observed, replicas: current }, NOW);
      if (actions.length === 0) return { replicas: current, writes };
      writes += actions.length;
      current = current.map((replica) => {
        const action = actions.find(({ uid }) => uid === replica.uid);
        return action?.type === "cost" ? { ...replica, costed: false, cost: action.cost } : replica;
      });
    }
  }

  /** Returns the remaining replicas after an owner has deleted the cheapest ones. */
  function left(all: readonly Replica[], count: number): Record<string, number> {
    const kept = [...all].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0)).slice(0, count);
    return {
      west: kept.filter(({ member }) => member === "west").length,
      east: kept.filter(({ member }) => member === "east").length,
    };
  }

  test("make a shrinking owner keep its division, however many replicas each member had", () => {
    fc.assert(
      fc.property(fc.nat({ max: 40 }), fc.nat({ max: 40 }), (west, east) => {
        const costed = (): Partial<Replica> => ({ costed: true });
        const all = [...replicas("west", west, costed), ...replicas("east", east, costed)];
        const { replicas: after } = written(world({ ...still, replicas: all }));
        for (const count of [3, 6, 9, 30]) {
          if (west >= (count * 2) / 3 && east >= count / 3) {
            expect(left(after, count)).toEqual({ west: (count * 2) / 3, east: count / 3 });
          }
        }
      }),
    );
  });

  test.each([
    [10, 70, 50, { west: 10, east: 40 }],
    [30, 0, 1, { west: 1, east: 0 }],
  ])(
    "leave the replica below its share, of %i and %i by equal weights, at a size of %i",
    (west, east, count, expected) => {
      const costed = (): Partial<Replica> => ({ costed: true });
      const all = [...replicas("west", west, costed), ...replicas("east", east, costed)];
      const { preferences } = world({});
      expect(
        left(written(world({ preferences: { ...preferences, rebalance: false }, replicas: all })).replicas, count),
      ).toEqual(expected);
    },
  );

  test("are not written again while they are in order, though replicas have gone", () => {
    const all = [...replicas("west", 8, () => ({ costed: true })), ...replicas("east", 4, () => ({ costed: true }))];
    const { replicas: after, writes } = written(world({ ...still, replicas: all }));
    expect(writes).toBe(12);
    const fewer = [...after].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0)).slice(0, 6);
    expect(decide(world({ ...still, replicas: fewer }), NOW).actions).toEqual([]);
  });

  test("are left alone if they are an author's, or their owner ignores them", () => {
    const all = [...replicas("west", 3), ...replicas("east", 3)];
    expect(decide(world({ ...still, replicas: all }), NOW).actions).toEqual([]);
  });
});
