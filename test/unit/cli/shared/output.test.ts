import { styleText } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { table } from "../../../../src/cli/shared/output.ts";
import { textWidth } from "../../../../src/cli/shared/text-width.ts";

const red = (text: string): string => styleText("red", text, { validateStream: false });

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
        "    REASON",
        `東京-a-long-name  ${red("False")}`,
        "    connect ECONNREFUSED 10.0.0.1:6443",
        "west              True",
      ].join("\n"),
    );
  });

  test("shortens names before the titles of other columns", () => {
    expect(table(header, rows, 18).split("\n").slice(0, 4)).toEqual([
      "NAME         READY",
      "    REASON",
      `東京-a-lon…  ${red("False")}`,
      "    connect",
    ]);
  });

  test("leaves columns out, the least important first, and shortens no title of the others", () => {
    const of = (width: number): string[] =>
      table(["NAME", "CPU FREE/ALL", "AGE"], [["west", "192/192", "5d"]], width, ["AGE", "CPU FREE/ALL"]).split("\n");
    expect(of(23)).toEqual(["NAME  CPU FREE/ALL  AGE", "west  192/192       5d"]);
    expect(of(22)).toEqual(["NAME  CPU FREE/ALL", "west  192/192", "(-o wide shows AGE)"]);
    expect(of(17)).toEqual(["NAME", "west"]);
  });

  test("names the columns that it leaves out, or counts them where there is no room for their names", () => {
    const titles = ["NAME", "FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH"];
    const note = (width: number): string | undefined =>
      table(titles, [["a".repeat(32), ...titles.slice(1)]], width, titles.slice(1)).split("\n")[2];
    expect(note(50)).toBe("(-o wide shows FIRST, SECOND, THIRD)");
    expect(note(35)).toBe("(-o wide shows 5 more columns)");
  });

  test("is never wider than the terminal", () => {
    const cell = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 40 }),
      fc.constantFrom("東京タワー", red("False"), "a b c"),
    );
    const tables = fc.array(fc.array(cell, { minLength: 3, maxLength: 3 }), { maxLength: 5 });
    fc.assert(
      fc.property(tables, fc.integer({ min: 1, max: 120 }), fc.subarray(header.slice(1)), (cells, width, optional) => {
        const oneLine = cells.map((row) =>
          row.map((each) => each.replace(/[\n\t\p{Cc}]/gu, (c) => (c === "\u001b" ? c : ""))),
        );
        for (const line of table(header, oneLine, width, optional).split("\n"))
          expect(textWidth(line)).toBeLessThanOrEqual(width);
      }),
    );
  });
});
