import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ClusterPreferences, SchedulingPreferences } from "../../../../src/api/preferences.ts";
import { divide, type Replicas } from "../../../../src/placement/division.ts";
import { SimulatedDeployment } from "../../../support/rollout/simulated-deployment.ts";

const NAMES = ["a", "b", "c", "d", "e", "f"];

interface Update {
  readonly clusters: readonly ClusterPreferences[];
  readonly replicas: number;
  readonly maxSurge: number;
  readonly maxUnavailable: number;
  readonly seed: number;
}

/** The greatest deviations of some updates, at any moment and at the end of each. */
interface Seen {
  readonly worst: number;
  readonly end: number;
}

/** The events of a Deployment between two rests. */
type Story = (deployment: SimulatedDeployment, random: () => number) => void;

const updated: Story = (deployment) => deployment.update();
const rolledBack: Story = (deployment, random) => {
  deployment.update();
  deployment.settle(Math.floor(random() * deployment.replicas * 6));
  deployment.rollBack();
};
const scaled: Story = (deployment, random) => {
  deployment.update();
  deployment.settle(Math.floor(random() * deployment.replicas * 6));
  deployment.scale(1 + Math.floor(random() * 2 * deployment.replicas));
};
const twice: Story = (deployment, random) => {
  deployment.update();
  deployment.settle(Math.floor(random() * deployment.replicas * 6));
  deployment.update();
};

function seenIn({ clusters, seed, ...sizes }: Update, stories: readonly Story[], ready = false): Seen {
  const names = NAMES.slice(0, clusters.length);
  const preferences: SchedulingPreferences = {
    rebalance: false,
    clusters: Object.fromEntries(clusters.map((own, index) => [NAMES[index] ?? "", own])),
  };
  const random = randomFrom(seed);
  const deployment = new SimulatedDeployment({ preferences, clusters: names, random, ready, ...sizes });
  const ideals = new Map<number, Replicas>();
  /** Returns by how many replicas the worst cluster is off the division of the present number. */
  const errorOf = (placed: Replicas): number => {
    const total = Object.values(placed).reduce((sum, one) => sum + one, 0);
    const ideal = ideals.get(total) ?? divide({ total, preferences, clusters: names, key: "team/web" }).replicas;
    ideals.set(total, ideal);
    return Math.max(...names.map((name) => Math.abs((placed[name] ?? 0) - (ideal[name] ?? 0))));
  };
  let end = 0;
  for (const story of stories) {
    story(deployment, random);
    deployment.settle();
    end = Math.max(end, errorOf(deployment.newest));
  }
  return { worst: Math.max(0, ...deployment.moments.map(({ placed }) => errorOf(placed))), end };
}

/** xorshift32. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

const weighted = (weights: readonly number[]): ClusterPreferences[] =>
  weights.map((weight) => ({ weight, minReplicas: 0 }));

const seed = fc.integer({ min: 1, max: 2 ** 31 - 1 });
const sizes = fc.integer({ min: 1, max: 24 }).chain((replicas) =>
  fc
    .record({ maxSurge: fc.nat({ max: replicas }), maxUnavailable: fc.nat({ max: replicas }) })
    .filter(({ maxSurge, maxUnavailable }) => maxSurge + maxUnavailable > 0)
    .map((surge) => ({ replicas, ...surge })),
);
/** Deployments' own defaults. */
const quarters = fc.integer({ min: 1, max: 24 }).map((replicas) => ({
  replicas,
  maxSurge: Math.ceil(replicas / 4),
  maxUnavailable: Math.floor(replicas / 4),
}));
const weights = (maxLength: number): fc.Arbitrary<ClusterPreferences[]> =>
  fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 2, maxLength }).map(weighted);
const limits = fc.array(
  fc
    .record({ weight: fc.nat({ max: 8 }), minReplicas: fc.nat({ max: 5 }), more: fc.option(fc.nat({ max: 8 })) })
    .map(({ weight, minReplicas, more }): ClusterPreferences => {
      return { weight, minReplicas, ...(more === null ? {} : { maxReplicas: minReplicas + more }) };
    }),
  { minLength: 1, maxLength: 3 },
);
// The first cluster takes the rest.
const limited = limits.map((others) => [{ weight: 1, minReplicas: 0 }, ...others]);

describe("all ReplicaSets of a Deployment that is updated", () => {
  const surges = Array.from({ length: 10 }, (_, maxSurge) => maxSurge);

  test.each([[[1, 1]], [[2, 1]], [[1, 1, 1]], [[3, 2, 1]], [[3, 2, 2]], [[5, 3, 1, 1]]])(
    "stay within one replica of their division by weights %j, whatever maxSurge and maxUnavailable are",
    (given) => {
      for (const maxSurge of surges) {
        for (const maxUnavailable of surges) {
          if (maxSurge + maxUnavailable === 0) continue;
          const update = { clusters: weighted(given), replicas: 9, maxSurge, maxUnavailable, seed: 7 + maxSurge };
          const { worst, end } = seenIn(update, [updated]);
          expect(Math.max(worst, end), `maxSurge ${maxSurge}, maxUnavailable ${maxUnavailable}`).toBeLessThanOrEqual(1);
        }
      }
    },
  );

  test("stay within one for any weights of up to three clusters, in any order of events", () => {
    fc.assert(
      fc.property(weights(3), sizes, seed, (clusters, size, from) => {
        const { worst, end } = seenIn({ clusters, ...size, seed: from }, [updated, updated]);
        expect(worst).toBeLessThanOrEqual(1);
        expect(end).toBeLessThanOrEqual(1);
      }),
      { numRuns: 150 },
    );
  });

  test("stay within one when the update is rolled back midway", () => {
    fc.assert(
      fc.property(weights(3), sizes, seed, (clusters, size, from) => {
        const { worst, end } = seenIn({ clusters, ...size, seed: from }, [rolledBack, updated], true);
        expect(worst).toBeLessThanOrEqual(1);
        expect(end).toBeLessThanOrEqual(1);
      }),
      { numRuns: 150 },
    );
  });

  test("stay within two with more clusters, also when they are scaled or updated again midway", () => {
    fc.assert(
      fc.property(weights(6), sizes, seed, (clusters, size, from) => {
        const { worst } = seenIn({ clusters, ...size, seed: from }, [updated, scaled, twice], true);
        expect(worst).toBeLessThanOrEqual(2);
      }),
      { numRuns: 150 },
    );
  });

  test("deviate by no more than the replicas in motion, and by one at the end, if there are limits", () => {
    fc.assert(
      fc.property(limited, quarters, seed, (clusters, size, from) => {
        const { worst, end } = seenIn({ clusters, ...size, seed: from }, [updated, updated]);
        expect(worst).toBeLessThanOrEqual(1 + size.maxSurge + size.maxUnavailable);
        expect(end).toBeLessThanOrEqual(1);
      }),
      { numRuns: 150 },
    );
  });

  const own = (weight: number, minReplicas = 0, maxReplicas?: number): ClusterPreferences => {
    return { weight, minReplicas, ...(maxReplicas === undefined ? {} : { maxReplicas }) };
  };
  test.each<[string, Update]>([
    [
      "most replicas are given before weights count",
      {
        clusters: [own(1), own(0, 4), own(0, 4), own(1, 5, 6)],
        replicas: 22,
        maxSurge: 6,
        maxUnavailable: 5,
        seed: 121761566,
      },
    ],
    [
      "only minReplicas count for two clusters",
      { clusters: [own(1), own(0, 1), own(0, 3)], replicas: 19, maxSurge: 5, maxUnavailable: 4, seed: 1837070489 },
    ],
    [
      "only minReplicas count for one cluster",
      { clusters: [own(1), own(1), own(0, 4)], replicas: 13, maxSurge: 4, maxUnavailable: 3, seed: 2113929212 },
    ],
  ])("deviate by no more than that where %s", (_, update) => {
    const { worst, end } = seenIn(update, [updated, updated]);
    expect(worst).toBeLessThanOrEqual(1 + update.maxSurge + update.maxUnavailable);
    expect(end).toBeLessThanOrEqual(1);
  });

  test("are created anew at once under the strategy Recreate, exactly divided", () => {
    const update = { clusters: weighted([3, 2, 1]), replicas: 12, maxSurge: 0, maxUnavailable: 12, seed: 5 };
    expect(seenIn(update, [updated]).end).toBe(0);
  });
});
