import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ClusterClient, TableReads } from "../../../../src/kube/client.ts";
import { createClusterClient } from "../../../../src/kube/http-client.ts";
import { pods } from "../../../../src/kube/resources.ts";
import type { TableEvent } from "../../../../src/kube/tables.ts";
import { anonymous, kubeErrorOf } from "../../../support/fault-server/connect.ts";
import { answerJson, FaultServer, line } from "../../../support/fault-server/fault-server.ts";
import { refuse, stream } from "../../../support/fault-server/faults.ts";
import { row, table } from "../server-table.ts";

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
