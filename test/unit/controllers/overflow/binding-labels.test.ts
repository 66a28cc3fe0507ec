import { expect, test } from "vitest";
import { copiesLabels } from "../../../../src/controllers/overflow/binding-labels.ts";

test.each([
  [{ major: "1", minor: "36" }, true],
  [{ major: "1", minor: "35+" }, true],
  [{ major: "2", minor: "0" }, true],
  [{ major: "1", minor: "34" }, false],
  [{ major: "1", minor: "" }, false],
  ["unexpected", false],
])("reports whether an API server that answers %j copies a Binding's labels: %j", (answer, expected) => {
  expect(copiesLabels(answer)).toBe(expected);
});
