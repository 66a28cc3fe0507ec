import fc from "fast-check";
import { expect, test } from "vitest";
import {
  isKnownExpression,
  type LabelExpression,
  nodeExpressionSchema,
  selectorOf,
} from "../../../src/api/label-expressions.ts";
import { parseLabelSelector, selectorMatches } from "../../../src/api/label-selector.ts";

const key = fc.constantFrom("region", "example.com/tier");
const value = fc.constantFrom("eu", "us", "");
const values = fc.uniqueArray(value, { minLength: 1, maxLength: 3 });
const expression = fc.oneof(
  fc.record({ key, operator: fc.constantFrom("In" as const, "NotIn" as const), values }),
  fc.record({ key, operator: fc.constantFrom("Exists" as const, "DoesNotExist" as const) }),
);
const labels = fc.dictionary(key, value);

/** Writes the expression as kubectl takes it. */
function written({ key: of, operator, values: some = [] }: LabelExpression): string {
  if (operator === "Exists") return of;
  if (operator === "DoesNotExist") return `!${of}`;
  return `${of} ${operator === "In" ? "in" : "notin"} (${some.join(",")})`;
}

test("a selector in fields selects the labels that the same selector in text does", () => {
  fc.assert(
    fc.property(fc.array(expression, { maxLength: 3 }), labels, (matchExpressions, of) => {
      const parsed = parseLabelSelector(matchExpressions.map(written).join(","));
      if (!parsed.ok) throw new Error(parsed.message);
      expect(selectorMatches(selectorOf({ matchExpressions }), of)).toBe(selectorMatches(parsed.selector, of));
    }),
  );
});

test("matchLabels are expressions with one value each", () => {
  const selector = selectorOf({ matchLabels: { region: "eu", tier: "a" } });
  expect(selectorMatches(selector, { region: "eu", tier: "a", more: "x" })).toBe(true);
  expect(selectorMatches(selector, { region: "eu" })).toBe(false);
});

test.each([
  ["Gt", "3", "4", true],
  ["Gt", "3", "3", false],
  ["Lt", "3", "2", true],
  ["Gt", "x", "4", false],
  ["Lt", "3", "y", false],
] as const)("%s %j of a label %j: %s", (operator, bound, label, matches) => {
  const selector = selectorOf({ matchExpressions: [{ key: "size", operator, values: [bound] }] });
  expect(selectorMatches(selector, { size: label })).toBe(matches);
});

test.each<[LabelExpression, string]>([
  [{ key: "region", operator: "Exists", values: ["eu"] }, "Exists takes no values; remove them"],
  [{ key: "region", operator: "In" }, "In needs values"],
  [{ key: "region", operator: "Gt", values: ["1", "2"] }, "Gt takes one value, an integer in quotes"],
  [{ key: "region", operator: "Lt", values: ["small"] }, "Lt takes one value, an integer in quotes"],
  [{ key: "a/b/c", operator: "Exists" }, 'key "a/b/c" is no label key'],
  [{ key: "region", operator: "In", values: ["e u"] }, '"e u" is no label value'],
])("the expression %j is refused, with what to write", (wrong, problem) => {
  const { error } = nodeExpressionSchema.safeParse(wrong);
  expect(error?.issues.map(({ message }) => message)).toEqual([expect.stringContaining(problem)]);
});

test("an operator of a later Kubernetes is not known", () => {
  expect(isKnownExpression({ key: "region", operator: "In" })).toBe(true);
  expect(isKnownExpression({ key: "region", operator: "Like" })).toBe(false);
});
