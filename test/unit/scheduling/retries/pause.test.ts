import { describe, expect, test } from "vitest";
import type { Refusal } from "../../../../src/placement/candidate.ts";
import type { Ranking } from "../../../../src/placement/rank.ts";
import type { Attempt } from "../../../../src/scheduling/memory.ts";
import type { PlaceableMember, PlacementView } from "../../../../src/scheduling/placement-view.ts";
import {
  allRefusals,
  nextRetry,
  openMembers,
  parkable,
  preemptable,
} from "../../../../src/scheduling/retries/pause.ts";

const NOW = 1_000;

function refusal(reason: Refusal["reason"], cluster = "west"): Refusal {
  return { cluster, reason, message: reason };
}

function attempt(parts: Partial<Attempt>): Attempt {
  return { since: 0, refusalCount: 1, nodesVersion: 1, ...parts };
}

/** Returns the view of a pod with these attempts, over `west` and `east`. */
function viewOf(
  attempts: Readonly<Record<string, Attempt>>,
  west: Partial<PlaceableMember> = {},
  parts: Partial<PlacementView> = {},
): PlacementView {
  const members = [
    { name: "west", nodesVersion: 1, ...west },
    { name: "east", nodesVersion: 1 },
  ];
  return { members, memory: { attempts }, ...parts };
}

const ranking = (parts: Partial<Ranking> = {}): Ranking => ({
  fitting: [],
  full: [],
  preemptable: [],
  refusals: [],
  ...parts,
});
const unschedulable = attempt({ refusal: refusal("Unschedulable"), until: NOW + 1 });
const denied = attempt({ refusal: refusal("RefusedByMember"), until: NOW + 1 });
const learnt = { refusal: refusal("RefusedByMember"), until: NOW + 5 };

describe("a member that refused the pod", () => {
  test.each<[string, Attempt, Partial<PlaceableMember>, boolean]>([
    ["is not tried before its pause is over", denied, {}, false],
    ["is tried in the moment its pause is over", { ...denied, until: NOW }, {}, true],
    ["is tried after a change of its nodes, if its scheduler refused", unschedulable, { nodesVersion: 2 }, true],
    ["is not tried after a change of its nodes, if its admission refused", denied, { nodesVersion: 2 }, false],
    ["is tried while the attempt is under way", attempt({}), {}, true],
  ])("%s", (_, tried, west, isOpen) => {
    expect(openMembers(["west", "east"], viewOf({ west: tried }, west), NOW)).toEqual(
      isOpen ? ["west", "east"] : ["east"],
    );
  });

  test("is not tried if it refused a pod like this one, unless its own answer to this pod is over", () => {
    const west = { refusedBefore: learnt };
    expect(openMembers(["west"], viewOf({}, west), NOW)).toEqual([]);
    expect(openMembers(["west"], viewOf({ west: { ...denied, until: NOW } }, west), NOW)).toEqual(["west"]);
  });
});

test("a member that did not preempt in time waits for its whole backoff, whatever its nodes do", () => {
  const view = viewOf({ west: unschedulable }, { nodesVersion: 2 });
  expect(openMembers(["west"], view, NOW)).toEqual(["west"]);
  expect(preemptable(ranking({ preemptable: ["west", "east"] }), view, NOW)).toEqual(["east"]);
});

test("a pod may be parked where a scheduler had no room, and not where admission refused it", () => {
  const order = ranking({ preemptable: ["east"], fitting: ["west"], full: ["east", "west"] });
  expect(parkable(order, viewOf({ west: unschedulable }), NOW)).toEqual(["east", "west"]);
  expect(parkable(order, viewOf({ west: denied }), NOW)).toEqual(["east"]);
});

describe("the refusals that an author is told", () => {
  const full = refusal("Full");

  test("are a member's own in place of placement's while they hold", () => {
    const of = (until: number) =>
      allRefusals(ranking({ refusals: [full] }), viewOf({ west: { ...denied, until } }), NOW);
    expect(of(NOW + 1)).toEqual([denied.refusal]);
    expect(of(NOW)).toEqual([full]);
  });

  test("say of a pod like this one only where placement would try it", () => {
    const view = viewOf({}, { refusedBefore: learnt });
    expect(allRefusals(ranking({ fitting: ["west"] }), view, NOW)).toEqual([learnt.refusal]);
    expect(allRefusals(ranking({ refusals: [refusal("Tainted")] }), view, NOW)).toEqual([refusal("Tainted")]);
  });

  test("name Clusters that have not joined", () => {
    const view = viewOf({}, {}, { named: ["west", "wset"] });
    expect(allRefusals(ranking(), view, NOW)).toMatchObject([{ cluster: "wset", reason: "UnknownCluster" }]);
  });
});

test.each<[string, PlacementView, number | undefined]>([
  ["the first pause that ends", viewOf({ west: { ...denied, until: NOW + 9 } }, { refusedBefore: learnt }), NOW + 5],
  ["the end of what was learnt of its admission", viewOf({}, { learntUntil: NOW + 3 }), NOW + 3],
  ["never by itself if all pauses are over", viewOf({ west: { ...denied, until: NOW } }), undefined],
])("a pod is tried again at %s", (_, view, expected) => {
  expect(nextRetry(view, NOW)).toBe(expected);
});
