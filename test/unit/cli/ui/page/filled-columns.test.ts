import { expect, test } from "vitest";
import { type Columns, filledColumns } from "../../../../../src/cli/ui/page/filled-columns.ts";

test("leaves out a column of which all cells are empty", () => {
  const columns: Columns<string> = {
    Pod: (name) => name,
    Node: (name) => (name === "web-0" ? "n-1" : ""),
    Why: () => "",
  };
  expect(filledColumns(columns, ["web-0", "web-1"])).toEqual([
    { name: "Pod", cells: ["web-0", "web-1"] },
    { name: "Node", cells: ["n-1", ""] },
  ]);
});
