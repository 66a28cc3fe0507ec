import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { byName } from "../../../src/api/json.ts";
import type { ClusterPreferences } from "../../../src/api/preferences.ts";
import { type DivideInput, divide, type Replicas } from "../../../src/placement/division.ts";

// Clusters of one weight come in the order D, C, B, A for it, as they do in KubeFed's cases, which name no workload.
const LIKE_KUBEFED = "team/cart";

type Preferences = Readonly<Record<string, Partial<ClusterPreferences>>>;

function input(clusters: Preferences, total: number, names: string, more: Partial<DivideInput> = {}): DivideInput {
  const complete = Object.entries(clusters).map(([name, own]) => [name, { weight: 0, minReplicas: 0, ...own }]);
  return {
    total,
    preferences: { rebalance: true, clusters: Object.fromEntries(complete) },
    clusters: [...names],
    key: LIKE_KUBEFED,
    ...more,
  };
}

const anyOne = { "*": { weight: 1 } };

// The cases that KubeFed publishes for its replica planner, and what it answers. What is where already: division-rule.test.ts.
describe("divides like KubeFed", () => {
  test.each<[Preferences, number, string, Replicas]>([
    [anyOne, 50, "ABC", { A: 16, B: 17, C: 17 }],
    [anyOne, 50, "AB", { A: 25, B: 25 }],
    [anyOne, 1, "AB", { A: 0, B: 1 }],
    [anyOne, 1, "ABCD", { A: 0, B: 0, C: 0, D: 1 }],
    [anyOne, 1, "A", { A: 1 }],
    [anyOne, 1, "", {}],
    [{ "*": { minReplicas: 2 } }, 50, "ABC", { A: 2, B: 2, C: 2 }],
    [{ "*": { minReplicas: 20 } }, 50, "ABC", { A: 10, B: 20, C: 20 }],
    [{ "*": { minReplicas: 20 }, A: { minReplicas: 100, weight: 1 } }, 50, "ABC", { A: 50, B: 0, C: 0 }],
    [{ "*": { minReplicas: 10, weight: 1, maxReplicas: 12 } }, 50, "ABC", { A: 12, B: 12, C: 12 }],
    [{ "*": { weight: 1, maxReplicas: 2 } }, 50, "ABC", { A: 2, B: 2, C: 2 }],
    [{ "*": { weight: 0, maxReplicas: 2 } }, 50, "ABC", { A: 0, B: 0, C: 0 }],
    [{ A: { weight: 1 }, B: { weight: 2 } }, 60, "ABC", { A: 20, B: 40, C: 0 }],
    [{ A: { weight: 10_000 }, B: { weight: 1 } }, 50, "ABC", { A: 50, B: 0, C: 0 }],
    [{ A: { weight: 10_000 }, B: { weight: 1 } }, 50, "BC", { B: 50, C: 0 }],
    [
      { A: { weight: 10_000, maxReplicas: 10 }, B: { weight: 1 }, C: { weight: 1 } },
      50,
      "ABC",
      { A: 10, B: 20, C: 20 },
    ],
    [
      { A: { weight: 10_000, maxReplicas: 10 }, B: { weight: 1 }, C: { weight: 1, maxReplicas: 10 } },
      50,
      "ABC",
      { A: 10, B: 30, C: 10 },
    ],
    [limits(), 71, "ABCD", { A: 10, B: 30, C: 21, D: 10 }],
    [{ ...limits(), E: { weight: 1 } }, 91, "ABCDE", { A: 10, B: 25, C: 21, D: 10, E: 25 }],
  ])("%j: %i over %s", (preferences, total, names, replicas) => {
    expect(divide(input(preferences, total, names))).toEqual({ replicas, shortfall: {} });
  });

  test.each<[Preferences, number, string, Replicas, Replicas, Replicas]>([
    [anyOne, 50, "ABC", { C: 10 }, { A: 20, B: 20, C: 10 }, { C: 7 }],
    [{ A: { weight: 10_000 }, B: { weight: 1 } }, 50, "BC", { B: 10 }, { B: 10, C: 0 }, { B: 40 }],
    [{ A: { weight: 1 }, B: { weight: 2 } }, 60, "ABC", { B: 10 }, { A: 50, B: 10, C: 0 }, { B: 30 }],
    [limits(), 71, "ABCD", { C: 10 }, { A: 10, B: 41, C: 10, D: 10 }, { C: 11 }],
    [{ A: { weight: 1 }, B: { weight: 1 } }, 60, "ABC", { A: 10, B: 10 }, { A: 10, B: 10, C: 0 }, { A: 20, B: 20 }],
    [{ "*": { minReplicas: 20 } }, 50, "ABC", { B: 10 }, { A: 20, B: 10, C: 20 }, {}],
    [{ "*": { minReplicas: 20, weight: 1 } }, 60, "AB", { B: 10 }, { A: 50, B: 10 }, { B: 15 }],
  ])("%j: %i over %s with room for %j", (preferences, total, names, capacities, replicas, shortfall) => {
    expect(divide(input(preferences, total, names, { capacities }))).toEqual({ replicas, shortfall });
  });
});

function limits(): Preferences {
  return {
    A: { weight: 10_000, maxReplicas: 10 },
    B: { weight: 1 },
    C: { weight: 1, maxReplicas: 21 },
    D: { weight: 1, maxReplicas: 10 },
  };
}

test.each<[string, (nth: number) => string]>([
  ["Deployments of one application", (nth) => `shop/web-${nth}`],
  ["Jobs of a CronJob, by the minute", (nth) => `ci/build-${29_000_000 + nth}`],
  ["namespaces", (nth) => `team-${nth}/web`],
])("spreads single replicas of many %s over clusters of equal weight", (_, keyOf) => {
  const names = ["prod-eu", "prod-us", "prod-ap"];
  const counts = new Map(names.map((name) => [name, 0]));
  for (let nth = 0; nth < 300; nth++) {
    const { replicas } = divide({ ...input(anyOne, 1, "", { key: keyOf(nth) }), clusters: names });
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + (replicas[name] ?? 0));
  }
  expect(Math.min(...counts.values())).toBeGreaterThan(75);
});

describe("the division of any total", () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  const small = fc.nat({ max: 40 });
  const own = fc
    .record({ weight: fc.nat({ max: 20 }), minReplicas: fc.nat({ max: 5 }), more: fc.option(fc.nat({ max: 30 })) })
    .map(({ weight, minReplicas, more }) => ({
      weight,
      minReplicas,
      ...(more === null ? {} : { maxReplicas: minReplicas + more }),
    }));
  const anyInput: fc.Arbitrary<DivideInput> = fc.record({
    total: fc.nat({ max: 200 }),
    preferences: fc.record({
      rebalance: fc.boolean(),
      clusters: fc.dictionary(fc.constantFrom(...names, "*"), own, { minKeys: 1 }),
    }),
    clusters: fc.subarray(names),
    capacities: fc.dictionary(fc.constantFrom(...names), small),
    key: fc.string(),
  });

  function limitOf({ preferences, capacities = {} }: DivideInput, cluster: string): number {
    const {
      weight = 0,
      minReplicas = 0,
      maxReplicas,
    } = preferences.clusters[cluster] ?? preferences.clusters["*"] ?? {};
    const most = weight === 0 ? minReplicas : (maxReplicas ?? Number.POSITIVE_INFINITY);
    return Math.min(most, capacities[cluster] ?? Number.POSITIVE_INFINITY);
  }
  const sum = (replicas: Replicas): number => Object.values(replicas).reduce((all, one) => all + one, 0);

  test("adds up to the total as far as limits allow", () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const possible = sum(Object.fromEntries(given.clusters.map((cluster) => [cluster, limitOf(given, cluster)])));
        expect(sum(divide(given).replicas)).toBe(Math.min(given.total, possible));
      }),
    );
  });

  test("respects maximums and room, and minimums if the total allows", () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const { replicas } = divide(given);
        const wanted = given.clusters.map((cluster) => {
          const { minReplicas = 0 } = given.preferences.clusters[cluster] ?? given.preferences.clusters["*"] ?? {};
          return [cluster, Math.min(minReplicas, given.capacities?.[cluster] ?? minReplicas)] as const;
        });
        const enough = sum(Object.fromEntries(wanted)) <= given.total;
        for (const [cluster, least] of wanted) {
          const { maxReplicas } = given.preferences.clusters[cluster] ?? given.preferences.clusters["*"] ?? {};
          expect(replicas[cluster]).toBeLessThanOrEqual(maxReplicas ?? Number.POSITIVE_INFINITY);
          expect(replicas[cluster]).toBeLessThanOrEqual(given.capacities?.[cluster] ?? Number.POSITIVE_INFINITY);
          if (enough) expect(replicas[cluster]).toBeGreaterThanOrEqual(least);
        }
      }),
    );
  });

  test("gives one replica more to one cluster, and takes none away", () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const before = divide(given).replicas;
        const after = divide({ ...given, total: given.total + 1 }).replicas;
        const changes = given.clusters.map((cluster) => (after[cluster] ?? 0) - (before[cluster] ?? 0));
        expect(changes.every((change) => change === 0 || change === 1)).toBe(true);
        expect(changes.filter((change) => change === 1).length).toBeLessThanOrEqual(1);
      }),
    );
  });

  test("rounds each exact share up or down without limits", () => {
    const weights = fc.uniqueArray(fc.constantFrom(...names), { minLength: 1 }).chain((clusters) =>
      fc.record({
        clusters: fc.constant(clusters),
        weights: fc.array(fc.integer({ min: 1, max: 1000 }), {
          minLength: clusters.length,
          maxLength: clusters.length,
        }),
        total: fc.nat({ max: 500 }),
      }),
    );
    fc.assert(
      fc.property(weights, (given) => {
        const all = given.weights.reduce((sumOf, weight) => sumOf + weight, 0);
        const own = given.clusters.map((name, index) => [name, { weight: given.weights[index] ?? 0 }] as const);
        const { replicas } = divide({ ...input(Object.fromEntries(own), given.total, ""), clusters: given.clusters });
        for (const [name, { weight }] of own) {
          const exact = (given.total * weight) / all;
          expect(Math.abs((replicas[name] ?? 0) - exact)).toBeLessThan(1);
        }
      }),
    );
  });
});

test("divides over a cluster named like a field of every object", () => {
  const divided = divide({ ...input(anyOne, 4, ""), clusters: ["constructor", "west"] });
  expect(divided).toEqual({ replicas: { constructor: 2, west: 2 }, shortfall: {} });
  const full = divide({ ...input(anyOne, 4, ""), clusters: ["constructor", "west"], capacities: byName({ west: 1 }) });
  expect(full).toEqual({ replicas: { constructor: 3, west: 1 }, shortfall: { west: 1 } });
});
