import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SchedulingPreferences } from "../../../src/api/preferences.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { divide, divisionShares } from "../../../src/placement/division.ts";
import { DivisionOrder } from "../../../src/placement/division-order.ts";
import { divisionRule } from "../../../src/placement/division-rule.ts";
import { rank } from "../../../src/placement/rank.ts";
import { processorMs } from "../../support/harness/processor-time.ts";

const allocatable = { cpu: 1000, pods: 1000 };
const candidates: Candidate[] = ["a", "b", "c", "d"].map((name) => ({
  name,
  labels: {},
  allocatable,
  largestNode: allocatable,
  used: {},
}));
const key = "team/web";
const names = candidates.map(({ name }) => name);

function place(preferences: SchedulingPreferences, placed: Record<string, number>, replicas: number): string[] {
  const order = new DivisionOrder(divisionShares(preferences, names, { key }));
  const went: string[] = [];
  for (let n = 0; n < replicas; n++) {
    const rules = [divisionRule({ preferences, order, placed })];
    const [best] = rank({ requests: { cpu: 1 }, rules, candidates }).fitting;
    if (best === undefined) break;
    placed[best] = (placed[best] ?? 0) + 1;
    went.push(best);
  }
  return went;
}

const own = fc.record({ weight: fc.nat({ max: 9 }), minReplicas: fc.nat({ max: 4 }), more: fc.nat({ max: 20 }) });
const preferences = fc.dictionary(fc.constantFrom(...names, "*"), own, { minKeys: 1 }).map(
  (clusters): SchedulingPreferences => ({
    rebalance: false,
    clusters: Object.fromEntries(
      Object.entries(clusters).map(([name, { weight, minReplicas, more }]) => [
        name,
        { weight, minReplicas, maxReplicas: minReplicas + more },
      ]),
    ),
  }),
);

describe("replicas that are placed one by one", () => {
  test("are divided after each one as all together would be", () => {
    fc.assert(
      fc.property(preferences, fc.nat({ max: 60 }), (given, total) => {
        const placed: Record<string, number> = {};
        place(given, placed, total);
        const { replicas } = divide({ total, preferences: given, clusters: names, key });
        expect(Object.fromEntries(names.map((name) => [name, placed[name] ?? 0]))).toEqual(replicas);
      }),
    );
  });

  test("complete existing replicas to the division, if none exceeds its share", () => {
    const some = fc.record(Object.fromEntries(names.map((name) => [name, fc.nat({ max: 30 })])));
    fc.assert(
      fc.property(preferences, fc.nat({ max: 60 }), some, (given, total, lacking) => {
        const { replicas } = divide({ total, preferences: given, clusters: names, key });
        const all = Object.entries(replicas);
        const placed = Object.fromEntries(all.map(([name, has]) => [name, Math.max(0, has - (lacking[name] ?? 0))]));
        const missing = all.reduce((sum, [name, has]) => sum + has - (placed[name] ?? 0), 0);
        place(given, placed, missing);
        expect(placed).toEqual(replicas);
      }),
    );
  });

  // The cases that KubeFed publishes for what keeps its place and grows, and what it answers.
  test.each<[number, string, Record<string, number>, Record<string, number>]>([
    [50, "abc", { a: 0, b: 0, c: 30 }, { a: 10, b: 10, c: 30 }],
    [50, "ab", { a: 30, b: 0 }, { a: 30, b: 20 }],
    [15, "ab", { a: 0, b: 8 }, { a: 7, b: 8 }],
    [15, "ab", { a: 1, b: 8 }, { a: 7, b: 8 }],
    [15, "ab", { a: 4, b: 8 }, { a: 7, b: 8 }],
    [15, "ab", { a: 5, b: 8 }, { a: 7, b: 8 }],
    [15, "ab", { a: 6, b: 8 }, { a: 7, b: 8 }],
    [15, "ab", { a: 7, b: 8 }, { a: 7, b: 8 }],
    [5_000, "ab", { a: 3_000, b: 0 }, { a: 3_000, b: 2_000 }],
    [50, "ab", { a: 10, b: 0 }, { a: 25, b: 25 }],
    [50, "ab", { a: 10, b: 20 }, { a: 25, b: 25 }],
  ])("%i over %s with %j placed keep what is there", (total, of, placed, expected) => {
    const clusters = Object.fromEntries([...of].map((name) => [name, { weight: 1, minReplicas: 0 }]));
    const there = Object.values(placed).reduce((sum, one) => sum + one, 0);
    place({ rebalance: false, clusters }, placed, total - there);
    expect(placed).toEqual(expected);
  });

  test.each<[string, SchedulingPreferences["clusters"], Record<string, number>, Record<string, string>]>([
    [
      "not named",
      { a: { weight: 1, minReplicas: 0 } },
      {},
      Object.fromEntries(["b", "c", "d"].map((name) => [name, "legation.dev/scheduling-preferences does not name it"])),
    ],
    [
      "full by their own limits",
      {
        a: { weight: 1, minReplicas: 0, maxReplicas: 2 },
        b: { weight: 0, minReplicas: 0 },
        c: { weight: 0, minReplicas: 3 },
        d: { weight: 1, minReplicas: 0 },
      },
      { a: 2, c: 3 },
      {
        a: "has 2 of them, its maxReplicas",
        b: "its weight in legation.dev/scheduling-preferences is 0",
        c: "has its minReplicas of 3, and its weight is 0",
      },
    ],
  ])("are refused by clusters that are %s", (_, clusters, placed, messages) => {
    const given = { rebalance: false, clusters };
    const order = new DivisionOrder(divisionShares(given, names, { key }));
    const { refusals } = rank({
      requests: {},
      rules: [divisionRule({ preferences: given, order, placed })],
      candidates,
    });
    expect(Object.fromEntries(refusals.map(({ cluster, message }) => [cluster, message]))).toEqual(messages);
    expect(new Set(refusals.map(({ reason }) => reason))).toEqual(new Set(["NotPreferred"]));
  });

  test("wait in full clusters by their weights", () => {
    const clusters = { a: { weight: 3, minReplicas: 0 }, b: { weight: 1, minReplicas: 0 } };
    const given = { rebalance: false, clusters };
    const full = candidates.map((candidate) => ({ ...candidate, used: allocatable }));
    const placed: Record<string, number> = { a: 6, b: 2 };
    const order = new DivisionOrder(divisionShares(given, names, { capacities: { a: 6, b: 2 }, key }));
    for (let nth = 0; nth < 4; nth++) {
      const rules = [divisionRule({ preferences: given, order, placed })];
      const [best = ""] = rank({ requests: { cpu: 1 }, rules, candidates: full }).full;
      placed[best] = (placed[best] ?? 0) + 1;
    }
    expect(placed).toEqual({ a: 9, b: 3 });
  });

  test("are worth a wait if the next cluster's API server is late", () => {
    const given = {
      rebalance: false,
      clusters: { a: { weight: 1, minReplicas: 0 }, b: { weight: 1, minReplicas: 0 } },
    };
    const order = new DivisionOrder(divisionShares(given, names, { key }));
    const [next = ""] = place(given, {}, 1);
    const late = candidates.map((candidate) => ({ ...candidate, overdue: candidate.name === next }));
    const rules = [divisionRule({ preferences: given, order, placed: {} })];
    expect(rank({ requests: { cpu: 1 }, rules, candidates: late }).awaited).toBe(next);
  });

  test("are placed in well under a millisecond for 50 clusters and 20,000 replicas", () => {
    const many = Array.from({ length: 50 }, (_, index) => `c${index}`);
    const clusters = Object.fromEntries(many.map((name, index) => [name, { weight: index + 1, minReplicas: 1 }]));
    const given = { rebalance: false, clusters };
    const order = new DivisionOrder(divisionShares(given, many, { key }));
    const placed: Record<string, number> = {};
    const took = processorMs(() => {
      for (let n = 0; n < 20_000; n++) {
        const { score } = divisionRule({ preferences: given, order, placed });
        let best = "";
        let most = Number.NEGATIVE_INFINITY;
        for (const name of many) {
          const own = score?.({ name, labels: {}, allocatable, largestNode: allocatable, used: {} }) ?? 0;
          if (own > most) [best, most] = [name, own];
        }
        placed[best] = (placed[best] ?? 0) + 1;
      }
    });
    expect(took / 20_000).toBeLessThan(0.5);
    const { replicas } = divide({ total: 20_000, preferences: given, clusters: many, key });
    expect(placed).toEqual(replicas);
  });
});
