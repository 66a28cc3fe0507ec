import { describe, expect, test } from "vitest";
import { parseTable } from "../../../src/kube/tables.ts";
import { row, table } from "./server-table.ts";

describe("an answer as a table", () => {
  test("has the columns and rows that the server sent", () => {
    expect(parseTable(table)).toEqual({
      columns: [{ name: "Name", priority: 0 }],
      rows: [row],
      resourceVersion: "9",
      continue: "token",
    });
  });

  test("has name and age of the objects of a server without tables", () => {
    const pod = { metadata: { name: "web", creationTimestamp: "2026-01-01T00:00:00Z" } };
    const cells = ["web", "2026-01-01T00:00:00Z"];
    const columns = [
      { name: "Name", priority: 0 },
      { name: "Created At", priority: 0 },
    ];
    const list = { kind: "PodList", metadata: { resourceVersion: "3" }, items: [pod] };
    expect(parseTable(list)).toMatchObject({ columns, rows: [{ cells, object: pod }], resourceVersion: "3" });
    expect(parseTable({ kind: "Pod", ...pod })).toMatchObject({ columns, rows: [{ cells }] });
    expect(parseTable({ kind: "PodList", metadata: {}, items: null })).toMatchObject({ rows: [] });
  });

  test.each<[string, unknown]>([
    ["no rows", { ...table, rows: null, columnDefinitions: null }],
    ["rows that are none", { ...table, rows: ["x", null], columnDefinitions: [7] }],
  ])("is empty with %s", (_what, body) => {
    expect(parseTable(body)).toMatchObject({ columns: [], rows: [] });
  });

  test("has an empty object where the metadata have other types than promised", () => {
    const hostile = { cells: ["web"], object: { metadata: { name: "web", labels: { a: 1 } } } };
    expect(parseTable({ ...table, rows: [hostile, { cells: null }] })?.rows).toEqual([
      { cells: ["web"], object: {} },
      { cells: [], object: {} },
    ]);
  });

  test.each([["text"], [[]], [{ kind: "Table" }]])("is none for %j", (body) => {
    expect(parseTable(body)).toBeUndefined();
  });
});
