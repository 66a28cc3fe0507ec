import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ClusterClient, TableReads } from "../../../src/kube/client.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { parseTable, type TableEvent } from "../../../src/kube/tables.ts";
import { anonymous, kubeErrorOf } from "../../support/fault-server/connect.ts";
import { answerJson, FaultServer, line } from "../../support/fault-server/fault-server.ts";
import { refuse, stream } from "../../support/fault-server/faults.ts";

const column = { name: "Name", type: "string", format: "name", description: "", priority: 0 };
const row = {
  cells: ["web"],
  object: { metadata: { name: "web", namespace: "shop", uid: "u", resourceVersion: "7" } },
};
const table = {
  kind: "Table",
  metadata: { resourceVersion: "9", continue: "token" },
  columnDefinitions: [column],
  rows: [row],
};

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

describe("a client", () => {
  let server: FaultServer;
  let client: ClusterClient & TableReads;
  beforeEach(async () => {
    server = await FaultServer.start();
    client = createClusterClient({ cluster: "west", credentials: anonymous(server.url) });
  });
  afterEach(async () => {
    await client.close();
    await server.stop();
  });

  function answerWith(body: object): void {
    server.faults.push((_request, response) => {
      answerJson(response, 200, body);
      return true;
    });
  }

  test("asks for a table of a list, page by page", async () => {
    answerWith(table);
    const options = { namespace: "shop", limit: 500, continue: "before", includeObject: "Metadata" } as const;
    expect(await client.listTable(pods, options)).toMatchObject({ rows: [row], continue: "token" });
    const [request] = server.requests;
    expect(request?.headers.accept).toBe("application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    expect(Object.fromEntries(request?.query ?? [])).toEqual({
      limit: "500",
      continue: "before",
      includeObject: "Metadata",
    });
  });

  test("asks for a table of one object", async () => {
    answerWith(table);
    await client.listTable(pods, { namespace: "shop", name: "web", includeObject: "Object" });
    expect(server.requests[0]?.path).toBe("/api/v1/namespaces/shop/pods/web");
  });

  test("rejects an answer that is no table", async () => {
    answerWith(["x"]);
    expect(await kubeErrorOf(client.listTable(pods, { includeObject: "Metadata" }))).toMatchObject({
      code: "BadAnswer",
    });
  });

  test("yields the tables and bookmarks of a watch, and rejects with its error", async () => {
    const status = { kind: "Status", code: 410, reason: "Expired", message: "too old" };
    const text =
      line("ADDED", table) +
      line("DELETED", { ...table, columnDefinitions: null }) +
      line("BOOKMARK", { kind: "Table", metadata: { resourceVersion: "12" }, rows: [] }) +
      line("ERROR", status);
    server.faults.push(stream(text, "end"));
    const { signal } = new AbortController();
    const seen: TableEvent[] = [];
    const watching = (async () => {
      for await (const event of client.watchTable(pods, { resourceVersion: "1", includeObject: "Metadata", signal }))
        seen.push(event);
    })();
    expect(await kubeErrorOf(watching)).toMatchObject({ code: "Gone" });
    expect(seen).toMatchObject([
      { type: "ADDED", table: { rows: [row], columns: [{ name: "Name" }] } },
      { type: "DELETED", table: { rows: [row], columns: [] } },
      { type: "BOOKMARK", resourceVersion: "12" },
    ]);
  });

  test("rejects a refused list with the server's words", async () => {
    server.faults.push(refuse(403, "Forbidden"));
    expect(await kubeErrorOf(client.listTable(pods, { includeObject: "Metadata" }))).toMatchObject({
      code: "Forbidden",
    });
  });
});
