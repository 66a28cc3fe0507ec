import { expect, test } from "vitest";
import { cellsOf, cellText, headerOf, mergeColumns } from "../../../../src/cli/get/columns.ts";

const columns = (...names: string[]): { name: string; priority: number }[] =>
  names.map((name) => ({ name: name.replace("*", ""), priority: name.endsWith("*") ? 1 : 0 }));

test.each<[string, string[][], boolean, string[]]>([
  ["one cluster's", [["Name", "Ready"]], false, ["NAME", "READY"]],
  ["wide columns only where asked for", [["Name", "Node*", "Age"]], false, ["NAME", "AGE"]],
  ["wide columns in their place", [["Name", "Node*", "Age"]], true, ["NAME", "NODE", "AGE"]],
  [
    "columns of another version behind those that precede them",
    [
      ["Name", "Ready", "Age"],
      ["Name", "Phase", "Ready", "Zone", "Age", "Note"],
    ],
    false,
    ["NAME", "PHASE", "READY", "ZONE", "AGE", "NOTE"],
  ],
  [
    "columns in another order once",
    [
      ["Name", "A", "B"],
      ["Name", "B", "A"],
    ],
    false,
    ["NAME", "A", "B"],
  ],
])("merges the columns of several clusters' tables: %s", (_what, tables, wide, expected) => {
  expect(
    mergeColumns(
      tables.map((names) => columns(...names)),
      wide,
    ),
  ).toEqual(expected);
});

const OPTIONS = { wide: false, namespaces: true, showLabels: true, kindPrefix: "pod", events: true };

test("puts the cluster first, and leaves cells empty that a cluster's version lacks", () => {
  const titles = ["NAME", "PHASE", "AGE"];
  const metadata = { name: "web", namespace: "shop", labels: { b: "2", a: "1" } };
  const row = { cells: ["web", "5d"], object: { metadata } };
  const table = { cluster: "west", columns: columns("Name", "Age"), event: "ADDED" } as const;
  expect(headerOf(titles, OPTIONS)).toEqual(["EVENT", "CLUSTER", "NAMESPACE", "NAME", "PHASE", "AGE", "LABELS"]);
  expect(cellsOf(row, table, titles, OPTIONS)).toEqual(["ADDED", "west", "shop", "pod/web", "<none>", "5d", "a=1,b=2"]);
});

test.each<[unknown, string]>([
  [null, ""],
  [3, "3"],
  [true, "true"],
  ["two\nlines", "two..."],
  ["\u001b[31mred\u001b[0m\u0007 \u202Eback", "red back"],
  [JSON.rawJSON("9007199254740993"), "9007199254740993"],
])("formats the cell %j on one line", (value, expected) => {
  expect(cellText(value)).toBe(expected);
});
