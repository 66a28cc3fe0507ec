import { describe, expect, test } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import {
  conditionsOf,
  type MemberCopy,
  statusFromCopies,
  withoutGenerations,
} from "../../../src/copies/object-status.ts";

const EARLIER = "2026-01-01T00:00:00Z";
const LATER = "2026-01-02T00:00:00Z";

function object(generation: number, status?: object): Stored<AnyObject> {
  return {
    metadata: { name: "one", uid: "u1", resourceVersion: "1", generation },
    ...(status === undefined ? {} : { status }),
  };
}

function holder(member: string, status?: object, { inStep = true, generation = 7 } = {}): MemberCopy {
  return { member, inStep, isLost: false, ...(status === undefined ? {} : { copy: object(generation, status) }) };
}

function condition(status: string, more: object = {}): object {
  return { type: "Ready", status, reason: "Checked", message: "", lastTransitionTime: EARLIER, ...more };
}

describe("the status of an object in one member", () => {
  test("is that of the member's copy, word for word", () => {
    const status = { url: "http://a", conditions: [condition("True")], list: [1, 2] };
    expect(statusFromCopies(object(3), [holder("west", status)])).toEqual(status);
  });

  test("is none while the copy has none", () => {
    expect(statusFromCopies(object(3), [holder("west")])).toBeUndefined();
    expect(statusFromCopies(object(3), [])).toBeUndefined();
  });

  test.each([
    ["the host's when the member has seen it", 7, true, 3],
    ["a lower one when the member has not seen it", 6, true, 2],
    ["a lower one when the copy is another version", 7, false, 2],
  ])("has as its generation %s", (_, observedGeneration, inStep, expected) => {
    const status = { observedGeneration, conditions: [condition("True", { observedGeneration })] };
    expect(statusFromCopies(object(3), [holder("west", status, { inStep })])).toEqual({
      observedGeneration: expected,
      conditions: [condition("True", { observedGeneration: expected })],
    });
  });
});

describe("the status of an object in several members", () => {
  test("has what all agree on, and sums", () => {
    const west = holder("west", { phase: "Up", node: "a", ready: 2, total: 3 });
    const east = holder("east", { phase: "Up", node: "b", ready: 1 });
    expect(statusFromCopies(object(1), [west, east], ["ready", "total"])).toEqual({ phase: "Up", ready: 3, total: 3 });
  });

  test.each([
    [["True", "True"], "True"],
    [["True", "False"], "False"],
    [["True", "Unknown"], "Unknown"],
    [["Unknown", "False"], "False"],
  ])("has of conditions %j the status %s", (states, expected) => {
    const holders = states.map((state, index) => holder(`m${index}`, { conditions: [condition(state)] }));
    expect(statusFromCopies(object(1), holders)).toMatchObject({ conditions: [{ type: "Ready", status: expected }] });
  });

  test("is Unknown while a member has no copy, and names it", () => {
    const status = statusFromCopies(object(1), [holder("west", { conditions: [condition("True")] }), holder("east")]);
    expect(status).toEqual({
      conditions: [
        {
          type: "Ready",
          status: "Unknown",
          reason: "SeveralMembers",
          message: "east: no such condition yet; west: True, Checked",
          lastTransitionTime: EARLIER,
        },
      ],
    });
  });

  test("keeps the time of a condition whose status stays", () => {
    const holders = [
      holder("west", { conditions: [condition("True")] }),
      holder("east", { conditions: [condition("True", { lastTransitionTime: LATER })] }),
    ];
    const timeOf = (before: object): unknown => statusFromCopies(object(1, { conditions: [before] }), holders);
    expect(timeOf(condition("True"))).toMatchObject({ conditions: [{ lastTransitionTime: EARLIER }] });
    expect(timeOf(condition("False"))).toMatchObject({ conditions: [{ lastTransitionTime: LATER }] });
  });

  test("has the host's generation only when every member has seen it", () => {
    const seen = holder("west", { observedGeneration: 7 });
    expect(statusFromCopies(object(3), [seen, holder("east", { observedGeneration: 7 })])).toEqual({
      observedGeneration: 3,
    });
    expect(statusFromCopies(object(3), [seen, holder("east", { observedGeneration: 5 })])).toEqual({
      observedGeneration: 2,
    });
    expect(statusFromCopies(object(3), [seen, holder("east")])).toEqual({ observedGeneration: 0 });
  });

  test("has a condition of the host's generation only when every member has the condition", () => {
    const seen = { conditions: [condition("True", { observedGeneration: 7 })] };
    const generationIn = (other: object | undefined): unknown => {
      const status = statusFromCopies(object(3), [holder("west", seen), holder("east", other)]);
      return conditionsOf(status)?.map(({ observedGeneration }) => observedGeneration);
    };
    expect(generationIn(seen)).toEqual([3]);
    expect(generationIn(undefined)).toEqual([0]);
    expect(generationIn({ conditions: [] })).toEqual([0]);
  });
});

test("a status without generations keeps all other fields", () => {
  expect(withoutGenerations({ phase: "Up", observedGeneration: 3 })).toEqual({ phase: "Up" });
  const conditions = [condition("True", { observedGeneration: 3 }), condition("False")];
  expect(withoutGenerations({ conditions })).toEqual({ conditions: [condition("True"), condition("False")] });
});
