import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Job, Stored } from "../../../../src/api/kubernetes.ts";
import type { ClusterPreferences } from "../../../../src/api/preferences.ts";
import { divideJob, jobOfShare, moveShare } from "../../../../src/whole/jobs/division.ts";
import type { JobShare } from "../../../../src/whole/jobs/shares.ts";

const MEMBERS = ["west", "east", "south"];
const FAILED = { type: "Failed", status: "True" };

function job(spec: object, status?: Job["status"]): Stored<Job> {
  return {
    metadata: { name: "sum", namespace: "team", uid: "u1", resourceVersion: "1" },
    spec: { template: {}, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

function divided(
  spec: object,
  clusters: Readonly<Record<string, Partial<ClusterPreferences>>>,
  members: readonly string[] = MEMBERS,
): JobShare[] {
  const full = Object.entries(clusters).map(([name, own]) => [name, { weight: 0, minReplicas: 0, ...own }] as const);
  return divideJob(job(spec), { rebalance: false, clusters: Object.fromEntries(full) }, members);
}

function inMembers(spec: object, shares: readonly JobShare[], status?: Job["status"]): string[] {
  return shares.map((share) => {
    const { completions, parallelism, suspend = false } = jobOfShare(job(spec, status), share, shares).spec ?? {};
    return `${share.member}: ${completions} by ${parallelism}${suspend ? ", suspended" : ""}`;
  });
}

const TWO_TO_ONE = { west: { weight: 2 }, east: { weight: 1 } };

describe("the shares of a Job", () => {
  test.each<[string, object, Readonly<Record<string, Partial<ClusterPreferences>>>, string[]]>([
    ["follow the weights", { completions: 100, parallelism: 9 }, TWO_TO_ONE, ["east: 33 by 3", "west: 67 by 6"]],
    [
      "have no more pods at once than maxReplicas",
      { completions: 100, parallelism: 20 },
      { west: { weight: 1, maxReplicas: 5 }, east: { weight: 1 } },
      ["east: 75 by 15", "west: 25 by 5"],
    ],
    [
      "begin with minReplicas",
      { completions: 10, parallelism: 5 },
      { west: { minReplicas: 1 }, east: { weight: 1 } },
      ["east: 8 by 4", "west: 2 by 1"],
    ],
    ["are fewer than the members when there are fewer pods", { completions: 1 }, TWO_TO_ONE, ["west: 1 by 1"]],
    [
      "are made without parallelism, too",
      { completions: 3, parallelism: 0 },
      TWO_TO_ONE,
      ["east: 1 by 0", "west: 2 by 0"],
    ],
    ["are one when there is nothing to do", { completions: 0, parallelism: 2 }, TWO_TO_ONE, ["west: 0 by 0"]],
    ["are none when no weight is given", { completions: 3 }, { west: {} }, []],
    [
      "are divided at once, however large the Job is",
      { completions: 2 ** 31 - 1, parallelism: 2 ** 31 - 1 },
      TWO_TO_ONE,
      ["east: 715820724 by 33333", "west: 1431662923 by 66667"],
    ],
  ])("%s", (_, spec, clusters, expected) => {
    expect(inMembers(spec, divided(spec, clusters))).toEqual(expected);
  });

  test("have another parallelism in the same proportions", () => {
    const shares = divided({ completions: 100, parallelism: 9 }, TWO_TO_ONE);
    expect(inMembers({ parallelism: 30 }, shares)).toEqual(["east: 33 by 10", "west: 67 by 20"]);
    expect(inMembers({ parallelism: 1 }, shares)).toEqual(["east: 33 by 0", "west: 67 by 1"]);
  });

  test("take over the parallelism of those that have finished", () => {
    const [east, ...others] = divided({ completions: 100, parallelism: 9 }, TWO_TO_ONE);
    const complete = { conditions: [{ type: "Complete", status: "True" }] };
    const shares = east === undefined ? [] : [{ ...east, status: complete }, ...others];
    expect(inMembers({ parallelism: 9 }, shares)[1]).toBe("west: 67 by 9");
  });

  test("are suspended when one has failed, but for it", () => {
    const [east, ...others] = divided({ completions: 10, parallelism: 3 }, TWO_TO_ONE);
    const shares = east === undefined ? [] : [{ ...east, status: { conditions: [FAILED] } }, ...others];
    const status = { conditions: [{ type: "FailureTarget", status: "True" }] };
    expect(inMembers({ parallelism: 3 }, shares, status)).toEqual(["east: 3 by 1", "west: 7 by 2, suspended"]);
  });

  test("move with their completions, to the limit of the other member", () => {
    const [, west] = divided({ completions: 10, parallelism: 3 }, TWO_TO_ONE);
    const clusters = { south: { weight: 9, minReplicas: 0, maxReplicas: 4 } };
    expect(west && moveShare(west, "south", { rebalance: false, clusters })).toEqual({
      member: "south",
      part: { weight: 2, minReplicas: 0, maxReplicas: 4, completions: 7 },
    });
  });

  test("add up to the Job, whatever it asks", () => {
    const own = fc.record({
      weight: fc.nat(9),
      minReplicas: fc.nat(3),
      maxReplicas: fc.option(fc.integer({ min: 3, max: 9 }), { nil: undefined }),
    });
    const preferences = fc.record({ west: own, east: own, south: own });
    const size = { completions: fc.nat(1000), parallelism: fc.nat(50), later: fc.nat(50) };
    fc.assert(
      fc.property(preferences, fc.record(size), fc.subarray(MEMBERS), (clusters, { later, ...spec }, ended) => {
        const present = Object.entries(clusters).map(
          ([name, { maxReplicas, ...rest }]) =>
            [name, maxReplicas === undefined ? rest : { ...rest, maxReplicas }] as const,
        );
        const shares = divided(spec, Object.fromEntries(present));
        const wants = Object.values(clusters).some(({ weight, minReplicas }) => weight + minReplicas > 0);
        expect(shares.length > 0).toBe(wants);
        if (!wants) return;
        const total = shares.reduce((sum, { part }) => sum + (part?.completions ?? 0), 0);
        expect(total).toBe(spec.completions);
        const now = shares.map((share) =>
          ended.includes(share.member) ? { ...share, status: { conditions: [FAILED] } } : share,
        );
        const parallelisms = now.map(
          (share) => jobOfShare(job({ parallelism: later }), share, now).spec?.parallelism ?? 0,
        );
        expect(parallelisms.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(later);
        const open = now.filter(({ member, part }) => !ended.includes(member) && (part?.completions ?? 0) > 0);
        // Some share always goes on.
        if (open.length > 0 && later > 0) expect(Math.max(...parallelisms)).toBeGreaterThan(0);
      }),
    );
  });
});
