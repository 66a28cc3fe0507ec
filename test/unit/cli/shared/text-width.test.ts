import { styleText } from "node:util";
import { expect, test } from "vitest";
import { fitted, hanging, shortened, textWidth, wrapped } from "../../../../src/cli/shared/text-width.ts";

const red = (text: string): string => styleText("red", text, { validateStream: false });

test.each([
  ["west", 4],
  ["東京", 4],
  ["한국어", 6],
  ["ｱｲ", 2],
  ["é", 1],
  ["👩‍🚀", 2],
  [red("no"), 2],
  ["", 0],
])("counts %j as %d columns", (text, columns) => {
  expect(textWidth(text)).toBe(columns);
});

test("shortens to whole characters, and keeps the colour around them", () => {
  expect(shortened("legation-west", 8)).toBe("legatio…");
  expect(shortened("東京都庁", 6)).toBe("東京…");
  expect(shortened(red("Unknown"), 4)).toBe(red("Unk…"));
  expect(shortened("fits", 4)).toBe("fits");
});

test("breaks between words, keeps indentation and colour, and cuts a word that is longer than a line", () => {
  expect(wrapped("one two three", 8)).toEqual(["one two", "three"]);
  expect(wrapped("  one two", 6)).toEqual(["  one", "  two"]);
  expect(wrapped(red("one two"), 4)).toEqual([red("one"), red("two")]);
  expect(wrapped("abcdefghij k", 4)).toEqual(["abcd", "efgh", "ij k"]);
});

test("breaks no command in backticks that fits on a line", () => {
  expect(wrapped("see `legation join --help` now", 22)).toEqual(["see", "`legation join --help`", "now"]);
  expect(wrapped("see `legation join --help`", 10)).toEqual(["see", "`legation", "join", "--help`"]);
});

test("lets further lines begin beneath the first word after a lead, which may be coloured", () => {
  expect(hanging(`  ${red("FAIL")}  `, "one two 東京", 12)).toEqual([
    `  ${red("FAIL")}  one`,
    "        two",
    "        東京",
  ]);
});

test.each([
  ["kubectl get pods -n shop", 14, ["kubectl get \\", "    pods -n \\", "    shop"]],
  ["  legation get -o json | jq '.a | .b'", 26, ["  legation get -o json | \\", "      jq '.a | .b'"]],
  ["    kubectl get pods", 80, ["    kubectl get pods"]],
  ["see\n  one two", 8, ["see", "  one", "  two"]],
  ["legation get pods", Number.POSITIVE_INFINITY, ["legation get pods"]],
])("fits %j into %d columns so that a command can be copied", (text, width, lines) => {
  expect(fitted(text, width).split("\n")).toEqual(lines);
});
