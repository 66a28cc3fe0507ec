import { describe, expect, test } from "vitest";
import { expectPrepared } from "../../../../../src/controllers/delegation/actions/expectations.ts";
import { decide } from "../../../../../src/controllers/delegation/decide.ts";
import { ranked, recorded } from "../../../../../src/controllers/delegation/decision/on-demand.ts";
import { redacted } from "../../../../../src/controllers/delegation/decision/redact.ts";
import type { PodView } from "../../../../../src/controllers/delegation/decision/view.ts";
import { onDemand } from "../../../../../src/controllers/delegation/observe.ts";
import type { Needs, Preparation } from "../../../../../src/placement/needs.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";
import { delegateOf, type MemoryParts, member, memory, type TestMember } from "../world.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const waiting = proxyPod({});
const gated = proxyPod({ spec: { schedulingGates: [{ name: "quota" }] } });
const onNode = member("west", { delegate: delegateOf(waiting, { spec: { nodeName: "node-1" } }) });
const withoutNode = member("west", { delegate: delegateOf(waiting) });
const missing: Needs = { state: "missing", reason: "FailedMount", message: 'configmap "a" not found' };
const uncertain = (since: number): MemoryParts => ({
  uncertain: "west",
  uncertainCreate: { since, lastAt: since, message: "reset" },
});

interface Parts extends Partial<Omit<PodView, "members" | "memory" | "needs">> {
  readonly members?: readonly TestMember[];
  readonly memory?: MemoryParts;
  readonly needs?: Needs | undefined;
}

/** Returns the view of a pod without a node, and how often its phases ran and its facts were computed. */
function counting({ members = [member("west"), member("east")], memory: parts, needs, ...facts }: Parts = {}) {
  const counts = { runs: 0, needs: 0, rankings: 0 };
  // One phase alone reads it.
  const remembered = Object.defineProperty(memory(parts), "binding", {
    get: () => {
      counts.runs += 1;
    },
  });
  const candidates = members.map(({ candidate }) => candidate);
  const connections = members.map(({ candidate: _, ...connection }) => connection);
  const ref = { namespace: "team", name: "web-0" };
  const view: PodView = { ref, proxy: waiting, members: connections, memory: remembered, ...facts };
  const rules = () => {
    counts.rankings += 1;
    return [];
  };
  const needed = () => {
    counts.needs += 1;
    return needs;
  };
  return { counts, view: onDemand(view, candidates, { excludes: () => undefined, rules }, needed) };
}

const prepared = (preparation: Preparation): Needs => ({ state: "there", in: () => preparation });

describe("a pod without a node", () => {
  test.each<[string, Parts, string, { readonly needs: number; readonly rankings: number }]>([
    ["that is placed", { needs: prepared("prepared") }, "Placing", { needs: 1, rankings: 1 }],
    ["that is prepared first", { needs: prepared("unprepared") }, "Preparing", { needs: 1, rankings: 1 }],
    ["whose needs are missing", { needs: missing }, "Waiting", { needs: 1, rankings: 0 }],
    ["whose division is not known yet", { syncing: true }, "Waiting", { needs: 1, rankings: 0 }],
    ["that follows its group", { follows: true, waitingSince: now }, "Waiting", { needs: 0, rankings: 0 }],
    ["whose annotations cannot be read", { invalid: "no" }, "Waiting", { needs: 0, rankings: 0 }],
    ["whose delegate has a node", { members: [onNode] }, "Binding", { needs: 0, rankings: 0 }],
    [
      "whose delegate waits for a node, whatever is missing now",
      { members: [withoutNode], needs: missing },
      "Scheduling",
      { needs: 1, rankings: 1 },
    ],
    [
      "whose delegate waits in a namespace that is not opted in any more",
      { members: [withoutNode], optedIn: false },
      "Scheduling",
      { needs: 0, rankings: 0 },
    ],
    ["whose create is uncertain", { memory: uncertain(now - 10_000) }, "Placing", { needs: 0, rankings: 0 }],
    [
      "whose create is uncertain for long",
      { memory: uncertain(now - 60_000), needs: missing },
      "Placing",
      { needs: 1, rankings: 1 },
    ],
  ])("%s is decided on once, by no more than its phases ask for", (_, parts, outcome, computed) => {
    const { view, counts } = counting(parts);
    expect(decide(view, now).outcome).toBe(outcome);
    expect(counts).toEqual({ runs: 1, ...computed });
  });

  test("that is gated asks for nothing", () => {
    const { view, counts } = counting({ proxy: gated });
    expect(decide(view, now).outcome).toBe("Gated");
    expect(counts).toEqual({ runs: 0, needs: 0, rankings: 0 });
  });
});

describe("the record of a decision", () => {
  test.each<[string, Parts, readonly string[]]>([
    ["needs and ranking", { needs: prepared("prepared") }, ["needs", "ranking"]],
    ["needs alone", { needs: missing }, ["needs"]],
    ["neither", { invalid: "no" }, []],
  ])("has what was asked for: %s", (_, parts, expected) => {
    const { view } = counting(parts);
    const decision = decide(view, now);
    const record = redacted(recorded(view));
    expect(Object.keys(record).filter((name) => ["needs", "ranking", "onDemand"].includes(name))).toEqual(expected);
    expect(decide(record, now)).toEqual(decision);
  });

  test("is the whole view where all of it was asked for", () => {
    const { view } = counting({ needs: prepared("unprepared") });
    const whole = recorded(ranked(counting({ needs: prepared("unprepared") }).view));
    decide(view, now);
    expect(recorded(view)).toEqual(whole);
    expect(whole.members.map(({ preparation }) => preparation)).toEqual(["unprepared", "unprepared"]);
  });
});

test.each<[string, Parts, boolean, number]>([
  ["are unprepared", { needs: prepared("unprepared") }, false, 1],
  ["are there", { needs: prepared("prepared") }, true, 1],
  ["are refused", { needs: prepared({ refused: "no" }) }, true, 1],
  ["lack their sources", { needs: missing }, true, 1],
  ["matter no more, as it has a delegate", { members: [withoutNode], needs: prepared("unprepared") }, true, 0],
])("waits for a pod's copies without ranking members when they %s", (_, parts, isMet, needs) => {
  const { view, counts } = counting(parts);
  expect(expectPrepared("west")(view)).toBe(isMet);
  expect(counts).toEqual({ runs: 0, needs, rankings: 0 });
});
