import { describe, expect, test } from "vitest";
import { labelList } from "../../../../src/cli/join/command.ts";
import { memberName } from "../../../../src/cli/shared/input.ts";

describe("a member's name", () => {
  test.each(["west", "w", "west-1", "1", "a".repeat(54)])("accepts %s", (name) => {
    expect(memberName.parse(name)).toBe(name);
  });

  test.each(["", "West", "-a", "a-", "a.b", "a_b", "a".repeat(55), "a b"])("refuses %j", (name) => {
    expect(memberName.safeParse(name).success).toBe(false);
  });
});

describe("labels", () => {
  test.each([
    ["region=eu,tier=gold", { region: "eu", tier: "gold" }],
    [" region=eu , ", { region: "eu" }],
    ["", {}],
    ["constructor=acme", { constructor: "acme" }],
    ["topology.kubernetes.io/zone=a,empty=", { "topology.kubernetes.io/zone": "a", empty: "" }],
  ])("parses %j", (text, expected) => {
    expect(labelList.parse(text)).toEqual(expected);
  });

  test.each([
    ["region", /"region" is not key=value; write e.g. region=eu/],
    ["=eu", /is not key=value/],
    ["legation.dev/cluster=x", /Legation's own/],
    ["x.legation.dev/y=z", /Legation's own/],
    ["a=b,a=c", /twice/],
  ])("refuses %j", (text, message) => {
    const { error } = labelList.safeParse(text);
    expect(error?.issues.map((issue) => issue.message).join("; ")).toMatch(message);
  });

  test("names every invalid item", () => {
    const { error } = labelList.safeParse("a,b=c,d");
    expect(error?.issues.map(({ message }) => message)).toHaveLength(2);
  });
});
