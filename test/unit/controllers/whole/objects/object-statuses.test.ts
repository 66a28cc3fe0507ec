import { describe, expect, test } from "vitest";
import type { AnyObject, DelegatedTypeSpec } from "../../../../../src/api/delegated-type.ts";
import { objectKey, type Stored } from "../../../../../src/api/kubernetes.ts";
import { ObjectStatuses } from "../../../../../src/controllers/whole/objects/object-statuses.ts";
import type { ObjectMember } from "../../../../../src/copies/object-members.ts";

const RULE = { path: "/status/phase", value: "values.all(v, v + 'x' != '') ? 'Up' : 'Down'" };
const HERE = { hasSubresource: true };

function statuses(spec: Partial<DelegatedTypeSpec>): { readonly given: ObjectStatuses; readonly told: () => number } {
  let calls = 0;
  const type = { metadata: { name: "widgets" }, spec: { version: "v1", kind: "Widget", plural: "widgets", ...spec } };
  return { given: new ObjectStatuses(type, () => calls++), told: () => calls };
}

function object(name: string): Stored<AnyObject> {
  return { metadata: { namespace: "shop", name, uid: name, resourceVersion: "1", generation: 2 } };
}

function places(status: object): ObjectMember[] {
  const copy = { metadata: { name: "one", uid: "m1", resourceVersion: "1", generation: 5 }, status };
  const place = { isUsable: true, isKnown: true, hasCopy: true, inStep: true, isLost: false, copy };
  return [
    { ...place, member: "west" },
    { ...place, member: "east", excluded: "not named" },
  ];
}

test("a status has generations only of a type with a status subresource", () => {
  const { given } = statuses({});
  const there = places({ phase: "Up", observedGeneration: 5 });
  expect(given.of(object("one"), there, HERE)).toEqual({ phase: "Up", observedGeneration: 2 });
  expect(given.of(object("one"), there, { hasSubresource: false })).toEqual({ phase: "Up" });
});

describe("the condition ExpressionsValid", () => {
  test("is none for a type without expressions", () => {
    expect(statuses({}).given.condition()).toBeUndefined();
  });

  test("names each expression that does not compile", () => {
    const { given } = statuses({ health: "a", status: [{ path: "/status/b", value: "b" }] });
    expect(given.condition()).toMatchObject({
      status: "False",
      reason: "NotCompiled",
      message:
        "spec.health: line 1, column 1: Unknown variable: a; " +
        "spec.status[0] (/status/b): line 1, column 1: Unknown variable: b",
    });
  });

  test("names the first object for which an expression fails, until none does", () => {
    const { given, told } = statuses({ status: [RULE] });
    expect(given.condition()).toMatchObject({ status: "True", reason: "Evaluated" });
    expect(given.of(object("two"), places({ phase: 2 }), HERE)).toEqual({});
    given.of(object("one"), places({ phase: 1 }), HERE);
    given.of(object("one"), places({ phase: 1 }), HERE);
    expect(told()).toBe(2);
    const message = "shop/one: spec.status[0] (/status/phase): line 1, column 15: no such overload: dyn<int> + string";
    expect(given.condition()).toMatchObject({ reason: "EvaluationFailed", message: `${message}; and so for 1 more` });
    expect(given.of(object("one"), places({ phase: "a" }), HERE)).toEqual({ phase: "Up" });
    given.forget(objectKey(object("two").metadata));
    expect(told()).toBe(4);
    expect(given.condition()).toMatchObject({ status: "True" });
  });
});
