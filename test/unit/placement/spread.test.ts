import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ClusterSpread } from "../../../src/api/cluster-spread.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { spreadRule } from "../../../src/placement/spread.ts";

function candidate(name: string, labels: Record<string, string>): Candidate {
  return { name, labels, allocatable: {}, largestNode: {}, used: {} };
}

const west = candidate("west", { region: "eu" });
const north = candidate("north", { region: "eu" });
const east = candidate("east", { region: "us" });
const nowhere = candidate("nowhere", {});

function ruleOf(counts: Record<string, number>, spread: Partial<ClusterSpread> = {}, countsItself = true) {
  return spreadRule({
    spread: { topologyKey: "region", ...spread },
    counts: new Map(Object.entries(counts)),
    countsItself,
    eligible: [west, north, east, nowhere],
  });
}

describe("a hard spread", () => {
  test.each<[string, Record<string, number>, Partial<ClusterSpread>, boolean, string[]]>([
    ["every domain may have the first", {}, {}, true, ["west", "north", "east"]],
    ["a domain that is ahead may not", { west: 1 }, {}, true, ["east"]],
    ["members with one value are one domain", { west: 1, north: 1, east: 1 }, {}, true, ["east"]],
    ["maxSkew lets it be further ahead", { west: 1 }, { maxSkew: 2 }, true, ["west", "north", "east"]],
    ["too few domains: the fewest counts as none", { west: 1, east: 1 }, { minDomains: 3 }, true, []],
    [
      "over virtual nodes each member is a domain",
      { west: 1, east: 1 },
      { topologyKey: "legation.dev/cluster" },
      true,
      ["north", "nowhere"],
    ],
    ["a pod that does not count adds nothing", { west: 1 }, {}, false, ["west", "north", "east"]],
  ])("%s", (_, counts, spread, countsItself, allowed) => {
    const { filter } = ruleOf(counts, spread, countsItself);
    const open = [west, north, east, nowhere].filter((member) => filter?.(member) === undefined);
    expect(open.map(({ name }) => name)).toEqual(allowed);
  });

  test("reports the uneven domain or the missing label", () => {
    const { filter } = ruleOf({ west: 2, north: 1 });
    expect(filter?.(north)?.message).toBe(
      "one more pod would be too many: region=eu has 3, the fewest is 0, and maxSkew is 1",
    );
    expect(filter?.(nowhere)?.message).toBe("has no label region to spread over");
  });

  test("never lets domains differ by more than maxSkew, and never refuses them all", () => {
    const members = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(members, fc.integer({ min: 1, max: 3 }), fc.infiniteStream(fc.nat()), (domains, maxSkew, choices) => {
        const all = domains.map((domain, index) => candidate(`m${index}`, { region: `r${domain}` }));
        const counts = new Map<string, number>();
        for (let placed = 0; placed < 30; placed++) {
          const rule = spreadRule({
            spread: { topologyKey: "region", maxSkew },
            counts,
            countsItself: true,
            eligible: all,
          });
          const open = all.filter((member) => rule.filter?.(member) === undefined);
          const chosen = open[(choices.next().value ?? 0) % open.length];
          expect(chosen).toBeDefined();
          if (chosen === undefined) return;
          counts.set(chosen.name, (counts.get(chosen.name) ?? 0) + 1);
          const sums = new Map<string, number>();
          for (const { name, labels } of all) {
            const region = labels.region ?? "";
            sums.set(region, (sums.get(region) ?? 0) + (counts.get(name) ?? 0));
          }
          expect(Math.max(...sums.values()) - Math.min(...sums.values())).toBeLessThanOrEqual(maxSkew);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe("a soft spread", () => {
  test("filters no member and scores by the excess, lowest outside all domains", () => {
    const { filter, score } = ruleOf({ west: 2, east: 1 }, { whenUnsatisfiable: "ScheduleAnyway" });
    expect(filter).toBeUndefined();
    expect([west, north, east].map((member) => score?.(member))).toEqual([-2, -2, -1]);
    expect(score?.(nowhere)).toBeLessThan(-1000);
  });
});

test("a member without the topology label has no domain, whatever the label is called", () => {
  const { filter } = ruleOf({}, { topologyKey: "constructor" });
  expect(filter?.(west)).toMatchObject({ message: expect.stringContaining("constructor") });
});
