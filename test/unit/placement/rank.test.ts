import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Candidate, Rule } from "../../../src/placement/candidate.ts";
import { explain, isOverfull, nothingRanked, rank, whyBehind } from "../../../src/placement/rank.ts";

function candidate(name: string, parts: Partial<Candidate> = {}): Candidate {
  const allocatable = { cpu: 8, memory: 2 ** 34, pods: 100 };
  return { name, labels: {}, allocatable, largestNode: allocatable, used: {}, ...parts };
}

function excludes(...names: string[]): Rule {
  const refused = { reason: "NotSelected", message: "not named" } as const;
  return { filter: ({ name }) => (names.includes(name) ? refused : undefined) };
}

function penalties(of: Record<string, number>): Rule {
  return { score: ({ name }) => -(of[name] ?? 0) };
}

const requests = { cpu: 1, pods: 1 };

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
    [
      "a member with unread tenants behind others",
      [candidate("unknown"), candidate("known", { foreign: { cpu: 6 } })],
      ["known", "unknown"],
    ],
    [
      "equal load: fewer pods first",
      [candidate("a", { used: { cpu: 4, pods: 9 } }), candidate("b", { used: { cpu: 4 } })],
      ["b", "a"],
    ],
    ["equal load: by name", [candidate("b"), candidate("a")], ["a", "b"]],
  ])("%s", (_, candidates, order) => {
    expect(rank({ requests, candidates }).fitting).toEqual(order);
  });

  test("computes load by the pod's requests in each member", () => {
    const requestsIn = ({ name }: Candidate) => ({ ...requests, cpu: name === "a" ? 4 : 1 });
    expect(rank({ requests, requestsIn, candidates: [candidate("a"), candidate("b")] }).fitting).toEqual(["b", "a"]);
  });

  test.each([
    ["LimitRange", "cpu: 20 requested there by the LimitRange of the namespace, 8 left"],
    ["RuntimeClass", "cpu: 20 requested there with the overhead of its RuntimeClass, 8 left"],
    ["Admission", "cpu: 20 requested there by the member's admission, 8 left"],
  ] as const)("tells by what a member made a pod larger than its room: %s", (by, message) => {
    const made = { requests: { cpu: 20, pods: 1 }, by: { cpu: by } };
    const { full, refusals } = rank({
      requests: { pods: 1 },
      requestsIn: () => made.requests,
      mutationIn: () => made,
      candidates: [
        candidate("a", { allocatable: { cpu: 64, pods: 9 }, largestNode: { cpu: 64, pods: 9 }, used: { cpu: 56 } }),
      ],
    });
    expect([full, refusals]).toEqual([["a"], [{ cluster: "a", reason: "Full", message, dedupe: "cpu" }]]);
  });

  test.each([
    [60, false],
    [64, false],
    [65, true],
  ])("calls a member of 64 cores overfull by its %d requested ones: %s", (used, overfull) => {
    const size = { cpu: 64, pods: 9 };
    const west = candidate("west", { allocatable: size, largestNode: size, used: { cpu: used, pods: 3 } });
    expect(isOverfull({ cpu: 20, pods: 1 }, west)).toBe(overfull);
  });

  test.each<[string, Partial<Candidate>, Rule[], string]>([
    ["its answer is overdue", { overdue: true }, [penalties({ a: 1 })], "its API server is late to answer"],
    [
      "a rule scores it lower",
      { used: { cpu: 6 } },
      [penalties({}), { ...penalties({ a: 1 }), concern: "spread" }],
      "b is better by spread",
    ],
    ["others' pods are not known", {}, [], "what others' pods request there is not known yet"],
    [
      "it would be fuller",
      { foreign: { cpu: 3 } },
      [],
      "b has more room: with the pod it would be 25 % full, and this member 50 %",
    ],
    ["it has more pods", { foreign: {}, used: { cpu: 1, pods: 2 } }, [], "has more pods than b"],
    ["its name comes later", { foreign: {}, used: { cpu: 1, pods: 1 } }, [], "is as good as b"],
  ])("explains why a member ranks behind another: %s", (_, parts, rules, why) => {
    const [own, better] = [candidate("a", parts), candidate("b", { used: { cpu: 1, pods: 1 }, foreign: {} })];
    expect(whyBehind({ requests, rules, candidates: [] }, own, better)).toBe(why);
  });

  test("compares loads that are the same in whole per cent in words", () => {
    const [own, better] = [candidate("a", { foreign: { cpu: 0.02 } }), candidate("b", { foreign: {} })];
    const input = { requests: { cpu: 0.01 }, candidates: [] };
    expect(whyBehind(input, own, better)).toBe("b has slightly more room");
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
  ])("refuses a member with a reason: %s", (_, parts, words) => {
    const ranking = rank({ requests, candidates: [candidate("w", parts)] });
    expect(ranking.fitting).toEqual([]);
    expect(explain(ranking.refusals)).toBe(words);
  });

  test("lets the pod wait in a full member, not in a closed or excluded one", () => {
    const candidates = [
      candidate("full", { used: { cpu: 8 } }),
      candidate("fuller", { used: { cpu: 9 } }),
      candidate("closed", { closed: { reason: "ClusterNotReady", message: "down" } }),
      candidate("excluded"),
    ];
    const ranking = rank({ requests, rules: [excludes("excluded")], candidates });
    expect(ranking.full).toEqual(["full", "fuller"]);
    expect(ranking.refusals.map(({ cluster, reason }) => `${cluster} ${reason}`).sort()).toEqual([
      "closed ClusterNotReady",
      "excluded NotSelected",
      "full Full",
      "fuller Full",
    ]);
  });

  test.each<[string, Rule[], Partial<Candidate>, string[]]>([
    ["a score outweighs load", [penalties({ a: 1 })], { used: { cpu: 6 } }, ["c", "b", "a"]],
    ["an earlier score outweighs a later one", [penalties({ a: 2, b: 1 }), penalties({ c: 9 })], {}, ["c", "b", "a"]],
    [
      "a later score decides where the earlier ones are equal",
      [penalties({ c: 1 }), penalties({ a: 1 })],
      {},
      ["b", "a", "c"],
    ],
    ["no score outweighs an answer that is overdue", [penalties({ a: 1, c: 1 })], { overdue: true }, ["a", "c", "b"]],
  ])("%s", (_, rules, parts, order) => {
    const candidates = [candidate("a"), candidate("b", parts), candidate("c")];
    expect(rank({ requests, rules, candidates }).fitting).toEqual(order);
  });

  test.each<[string, Rule, boolean, string | undefined]>([
    ["one that is best by a rule that awaits it", { ...penalties({ a: 1, c: 1 }), awaits: true }, true, "b"],
    ["none that is best by another rule", penalties({ a: 1, c: 1 }), true, undefined],
    ["none that answers in time", { ...penalties({ a: 1, c: 1 }), awaits: true }, false, undefined],
    ["none that is late and not the best", { ...penalties({ b: 1 }), awaits: true }, true, undefined],
  ])("waits for a late member: %s", (_, rule, overdue, awaited) => {
    const candidates = [candidate("a"), candidate("b", { overdue }), candidate("c")];
    expect(rank({ requests, rules: [rule], candidates }).awaited).toBe(awaited);
  });

  test("reports the first refusing rule, before that the member is closed", () => {
    const closed = { reason: "Cordoned", message: "its virtual node is cordoned" } as const;
    const later: Rule = { filter: () => ({ reason: "Full", message: "never heard" }) };
    const { refusals } = rank({ requests, rules: [excludes("a"), later], candidates: [candidate("a", { closed })] });
    expect(refusals).toEqual([{ cluster: "a", reason: "NotSelected", message: "not named" }]);
  });

  test("does not refuse for rounding of fractions", () => {
    const used = { cpu: 0.1 + 0.2 + 6.7 };
    expect(rank({ requests, candidates: [candidate("a", { used })] }).fitting).toEqual(["a"]);
  });

  test("puts every member exactly once among fitting or refused", () => {
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
        const { fitting, refusals } = rank({ requests: { cpu, pods: 1 }, candidates });
        expect([...fitting, ...refusals.map(({ cluster }) => cluster)].sort()).toEqual(
          all.map(({ name }) => name).sort(),
        );
      }),
    );
  });
});

test("the ranking that equal pods share is the one of each alone, whatever changes between them", () => {
  const change = fc.record({
    name: fc.constantFrom("a", "b", "c", "d", "e"),
    to: fc.constantFrom("used", "used", "leaves", "closed", "overdue", "preferred", "lacks", "has all"),
    cpu: fc.nat({ max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const members = new Map<string, Candidate>();
      const lacking = new Set<string>();
      const shared = nothingRanked();
      for (const { name, to, cpu } of changes) {
        const amounts = { used: { cpu, pods: cpu % 2 }, preemptible: () => ({ cpu: cpu % 3 }) };
        const known = members.get(name);
        if (to === "leaves") members.delete(name);
        else if (to === "lacks") lacking.add(name);
        else if (to === "has all") lacking.delete(name);
        else if (to === "used" && known?.tracked === true) members.set(name, { ...known, ...amounts });
        else if (to === "used" && known !== undefined) Object.assign(known, amounts);
        else {
          const closed = to === "closed" ? { closed: { reason: "Cordoned", message: "cordoned" } as const } : {};
          const tracked = name === "a" ? {} : { tracked: true as const };
          members.set(
            name,
            candidate(name, { ...amounts, ...closed, ...tracked, overdue: to === "overdue", labels: { to } }),
          );
        }
        const lackIn = ({ name: one }: Candidate): string | undefined =>
          lacking.has(one) ? "lacks a class" : undefined;
        const lacks: Rule = {
          filter: (one) =>
            lackIn(one) === undefined ? undefined : { reason: "NotSelected", message: "lacks a class" },
          score: ({ labels }) => (labels.to === "preferred" ? 1 : 0),
        };
        const input = { requests, priority: 1, lackIn, rules: [lacks], candidates: [...members.values()] };
        expect(rank({ ...input, shared })).toEqual(rank(input));
      }
    }),
  );
});

test("judges only the members that changed for the next of equal pods", () => {
  const judged: string[] = [];
  const notes: Rule = {
    filter: ({ name }) => {
      judged.push(name);
      return undefined;
    },
  };
  const a = candidate("a", { tracked: true });
  const shared = nothingRanked();
  for (let turn = 0; turn < 3; turn += 1) {
    rank({ requests, rules: [notes], candidates: [a, candidate("b", { tracked: true })], shared });
  }
  expect(judged).toEqual(["a", "b", "b", "b"]);
});
