import { describe, expect, test } from "vitest";
import { VIRTUAL_NODE_LABEL } from "../../../src/api/keys.ts";
import { type VirtualNodeWish, wishExcludes, wishedMembers } from "../../../src/api/virtual-node-wish.ts";

const named = (operator: "In" | "NotIn", ...values: string[]) => [{ key: VIRTUAL_NODE_LABEL, operator, values }];

describe("a pod that names virtual nodes", () => {
  test.each<[string, VirtualNodeWish, boolean]>([
    ["no selector and no term", {}, false],
    ["a selector of the member", { selected: "west" }, false],
    ["a selector of another one", { selected: "east" }, true],
    ["one of two terms", { required: [named("In", "east"), named("NotIn", "east")] }, false],
    ["none of two terms", { required: [named("In", "east"), named("NotIn", "west")] }, true],
    ["a term, but another selector", { selected: "east", required: [named("In", "west")] }, true],
  ])("excludes a member by %s: %#", (_which, wish, isExcluded) => {
    expect(wishExcludes(wish, "west") !== undefined).toBe(isExcluded);
  });

  test.each<[VirtualNodeWish, readonly string[] | undefined]>([
    [{ selected: "west" }, ["west"]],
    [{ required: [named("In", "west", "east"), named("In", "west")] }, ["west", "east"]],
    [{ required: [named("In", "west"), named("NotIn", "east")] }, undefined],
    [{ required: [named("In", ...Array.from({ length: 101 }, (_, index) => `m${index}`))] }, undefined],
    [{}, undefined],
  ])("wishes for the members of each term, if every term names some and they are few: %#", (wish, expected) => {
    expect(wishedMembers(wish)).toEqual(expected);
  });
});
