import { describe, expect, test } from "vitest";
import { parsePlacement } from "../../../../../src/api/annotations.ts";
import type { AnyObject, DelegatedType } from "../../../../../src/api/delegated-type.ts";
import type { Stored } from "../../../../../src/api/kubernetes.ts";
import { ObjectPlacements } from "../../../../../src/controllers/whole/objects/object-placements.ts";
import type { Candidate } from "../../../../../src/placement/candidate.ts";
import type { ObjectRules } from "../../../../../src/scheduling/whole/object-placement.ts";

const TYPE: DelegatedType = {
  metadata: { name: "widgets.example.com" },
  spec: { group: "example.com", version: "v1", kind: "Widget", plural: "widgets" },
};

function object(annotations: Record<string, string> = {}, metadata: object = {}): Stored<AnyObject> {
  const labels = { "legation.dev/whole": "true" };
  const base = { name: "one", namespace: "team", uid: "u1", resourceVersion: "1" };
  return { metadata: { ...base, labels, annotations, ...metadata }, spec: { size: 1 } };
}

function candidate(name: string, labels: Record<string, string> = {}): Candidate {
  return { name, labels, allocatable: {}, largestNode: {}, used: {} };
}

/** Placements over members that a test changes, with the number of times that annotations were read. */
function setUp(candidates: Candidate[]): {
  readonly placements: ObjectPlacements;
  readonly reads: () => number;
  readonly optIn: (labels: Record<string, string> | undefined) => void;
} {
  let reads = 0;
  let namespaceLabels: Record<string, string> | undefined = {};
  const rules: ObjectRules = {
    parse: ({ metadata: { annotations = {} } }) => {
      reads += 1;
      return parsePlacement(annotations);
    },
    namespaceLabels: () => namespaceLabels,
  };
  const registry = { members: () => candidates.map((one) => ({ candidate: () => one })) };
  return {
    placements: new ObjectPlacements({ type: TYPE, rules, registry }),
    reads: () => reads,
    optIn: (labels) => {
      namespaceLabels = labels;
    },
  };
}

describe("the placement of an object", () => {
  test("is computed once while neither the object nor a member changes", () => {
    const { placements, reads } = setUp([candidate("west"), candidate("east")]);
    const one = object();
    expect(placements.of(one)).toBe(placements.of(one));
    expect(reads()).toBe(1);
    placements.of({ ...one });
    expect(reads()).toBe(2);
  });

  test("follows a member that changes, joins or leaves", () => {
    const candidates = [candidate("west"), candidate("east")];
    const { placements } = setUp(candidates);
    const one = object({ "legation.dev/cluster-selector": "gpu" });
    const getting = (): string[] =>
      [...placements.of(one).members].flatMap(([name, { excluded }]) => (excluded === undefined ? [name] : []));
    expect(getting()).toEqual([]);
    candidates[1] = candidate("east", { gpu: "yes" });
    expect(getting()).toEqual(["east"]);
    candidates.push(candidate("south", { gpu: "yes" }));
    expect(getting()).toEqual(["east", "south"]);
    candidates.splice(1, 1);
    expect(getting()).toEqual(["south"]);
  });

  test("is computed anew after a reset, when the namespace has changed", () => {
    const { placements, optIn } = setUp([candidate("west")]);
    const one = object();
    expect(placements.of(one).problem).toBeUndefined();
    optIn(undefined);
    placements.reset();
    const message = "namespace team is not opted in";
    expect(placements.of(one).problem).toBe(message);
    expect(placements.of(one).members.get("west")?.source).toEqual({ state: "unknown", message });
  });

  test("gives a member the object, and an excluded member or one of a deleted object none", () => {
    const { placements } = setUp([candidate("west"), candidate("east")]);
    const annotations = { "legation.dev/clusters": "west" };
    const one = object(annotations);
    const sources = (of: Stored<AnyObject>): unknown[] =>
      [...placements.of(of).members.values()].map(({ source }) => source);
    expect(sources(one)).toEqual([{ state: "present", object: one }, { state: "missing" }]);
    const deleted = object(annotations, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    expect(sources(deleted)).toEqual([{ state: "missing" }, { state: "missing" }]);
  });
});
