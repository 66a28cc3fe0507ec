import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { explain, rank } from "../../../src/placement/rank.ts";

function candidate(name: string, parts: Partial<Candidate> = {}): Candidate {
  const allocatable = { cpu: 8, memory: 2 ** 34, pods: 100 };
  return { name, labels: {}, allocatable, largestNode: allocatable, used: {}, ...parts };
}

const requests = { cpu: 1, pods: 1 };
const anywhere = (): undefined => undefined;

describe("members are ranked for one pod", () => {
  test.each<[string, Candidate[], string[]]>([
    ["least loaded first", [candidate("a", { used: { cpu: 4 } }), candidate("b", { used: { cpu: 1 } })], ["b", "a"]],
    [
      "load is relative to size",
      [candidate("small", { allocatable: { cpu: 2, pods: 100 } }), candidate("big")],
      ["big", "small"],
    ],
    [
      "the fuller resource counts",
      [candidate("a", { used: { pods: 90 } }), candidate("b", { used: { cpu: 4 } })],
      ["b", "a"],
    ],
    [
      "one whose answer is overdue last",
      [candidate("a", { overdue: true }), candidate("b", { used: { cpu: 6 } })],
      ["b", "a"],
    ],
    ["equal load: by name", [candidate("b"), candidate("a")], ["a", "b"]],
  ])("%s", (_, candidates, order) => {
    expect(rank({ requests, allows: anywhere, candidates }).fitting).toEqual(order);
  });

  test.each<[string, Partial<Candidate>, string]>([
    [
      "no node has that much",
      { largestNode: { cpu: 0.5, pods: 10 } },
      "w: cpu: 1 requested, the largest node has 500m",
    ],
    ["no node offers the resource", { largestNode: { pods: 10 } }, "w: no schedulable node offers cpu"],
    ["too little is left", { used: { cpu: 7.5 } }, "w: cpu: 1 requested, 500m left"],
    [
      "it is closed",
      { closed: { reason: "Cordoned", message: "its virtual node is cordoned" } },
      "w: its virtual node is cordoned",
    ],
  ])("a member is refused with its reason when %s", (_, parts, words) => {
    const ranking = rank({ requests, allows: anywhere, candidates: [candidate("w", parts)] });
    expect(ranking.fitting).toEqual([]);
    expect(explain(ranking.refusals)).toBe(words);
  });

  test("a member that lacks room may still hold the pod while it waits; a closed or excluded one may not", () => {
    const candidates = [
      candidate("full", { used: { cpu: 8 } }),
      candidate("fuller", { used: { cpu: 9 } }),
      candidate("closed", { closed: { reason: "ClusterNotReady", message: "down" } }),
      candidate("excluded"),
    ];
    const allows = ({ name }: Candidate): string | undefined => (name === "excluded" ? "not named" : undefined);
    const ranking = rank({ requests, allows, candidates });
    expect(ranking.full).toEqual(["full", "fuller"]);
    expect(ranking.refusals.map(({ cluster, reason }) => `${cluster} ${reason}`).sort()).toEqual([
      "closed ClusterNotReady",
      "excluded NotSelected",
      "full Full",
      "fuller Full",
    ]);
  });

  test("fractions that add up to the whole are not refused for their rounding", () => {
    const used = { cpu: 0.1 + 0.2 + 6.7 };
    expect(rank({ requests, allows: anywhere, candidates: [candidate("a", { used })] }).fitting).toEqual(["a"]);
  });

  test("every member is either fitting or refused, exactly once", () => {
    const amount = fc.nat({ max: 12 });
    const members = fc.uniqueArray(fc.record({ name: fc.string(), used: amount, has: amount }), {
      selector: ({ name }) => name,
    });
    fc.assert(
      fc.property(members, amount, (all, cpu) => {
        const candidates = all.map(({ name, used, has }) =>
          candidate(name, {
            used: { cpu: used },
            allocatable: { cpu: has, pods: 9 },
            largestNode: { cpu: has, pods: 9 },
          }),
        );
        const { fitting, refusals } = rank({ requests: { cpu, pods: 1 }, allows: anywhere, candidates });
        expect([...fitting, ...refusals.map(({ cluster }) => cluster)].sort()).toEqual(
          all.map(({ name }) => name).sort(),
        );
      }),
    );
  });
});
