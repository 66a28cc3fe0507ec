import { styleText } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { table } from "../../../../src/cli/shared/output.ts";
import { shortened, textWidth, wrapped } from "../../../../src/cli/shared/text-width.ts";

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

describe("a table", () => {
  const header = ["NAME", "READY", "REASON"];
  const rows = [
    ["東京-a-long-name", red("False"), "connect ECONNREFUSED 10.0.0.1:6443"],
    ["west", "True", ""],
  ];

  test("aligns wide characters and colours, and wraps nothing without a terminal", () => {
    expect(table(header, rows)).toBe(
      [
        "NAME              READY  REASON",
        `東京-a-long-name  ${red("False")}  connect ECONNREFUSED 10.0.0.1:6443`,
        "west              True",
      ].join("\n"),
    );
  });

  test("breaks the last column first, under its own header", () => {
    expect(table(header, rows, 50)).toBe(
      [
        "NAME              READY  REASON",
        `東京-a-long-name  ${red("False")}  connect ECONNREFUSED`,
        "                         10.0.0.1:6443",
        "west              True",
      ].join("\n"),
    );
  });

  test("puts the last column beneath its row where it has no room", () => {
    expect(table(header, rows, 40)).toBe(
      [
        "NAME              READY",
        `東京-a-long-name  ${red("False")}`,
        "    connect ECONNREFUSED 10.0.0.1:6443",
        "west              True",
      ].join("\n"),
    );
  });

  test("shortens names at last", () => {
    expect(table(header, rows, 18).split("\n").slice(0, 3)).toEqual([
      "NAME          REA…",
      `東京-a-long…  ${red("Fal…")}`,
      "    connect",
    ]);
  });

  test("shortens titles before what is under them", () => {
    const lines = table(["NAME", "CPU FREE/ALL", "AGE"], [["west", "192/192", "5d"]], 20).split("\n");
    expect(lines).toEqual(["NAME  CPU FREE…  AGE", "west  192/192    5d"]);
  });

  test("is never wider than the terminal", () => {
    const cell = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 40 }),
      fc.constantFrom("東京タワー", red("False"), "a b c"),
    );
    const tables = fc.array(fc.array(cell, { minLength: 3, maxLength: 3 }), { maxLength: 5 });
    fc.assert(
      fc.property(tables, fc.integer({ min: 1, max: 120 }), (cells, width) => {
        const oneLine = cells.map((row) =>
          row.map((each) => each.replace(/[\n\t\p{Cc}]/gu, (c) => (c === "\u001b" ? c : ""))),
        );
        for (const line of table(header, oneLine, width).split("\n"))
          expect(textWidth(line)).toBeLessThanOrEqual(width);
      }),
    );
  });
});
