import { expect, test } from "vitest";
import { filledColumns } from "../../../../../src/cli/ui/page/filled-columns.ts";

test("leaves out a column of which all cells are empty", () => {
  const rows = [
    { key: "a", cells: ["web-0", "n-1", ""] },
    { key: "b", cells: ["web-1", "", ""] },
  ];
  expect(filledColumns(["Pod", "Node", "Why"], rows)).toEqual([0, 1]);
});
