import { describe, expect, test } from "vitest";
import { configMaps, serviceAccounts } from "../../../src/kube/resources.ts";
import { ApiServer } from "../../support/api-server/api-server.ts";
import { clientOf } from "../../support/api-server/client.ts";
import { notes } from "../../support/api-server/conformance/suite.ts";
import { apiServerConformance } from "../../support/api-server/conformance.ts";
import { connect } from "../../support/fault-server/connect.ts";
import { FaultServer } from "../../support/fault-server/fault-server.ts";

const NAMESPACE = "team";

describe("in process", () => {
  apiServerConformance(async () => {
    const server = new ApiServer();
    server.put(serviceAccounts, { metadata: { namespace: NAMESPACE, name: "default" } });
    return { client: clientOf(server), namespace: NAMESPACE };
  });
});

describe("over HTTP", () => {
  apiServerConformance(async () => {
    const server = await FaultServer.start({ api: new ApiServer() });
    server.api.resources.define(notes);
    server.api.put(serviceAccounts, { metadata: { namespace: NAMESPACE, name: "default" } });
    const client = connect(server);
    const close = async (): Promise<void> => {
      await client.close();
      await server.stop();
    };
    return { client, namespace: NAMESPACE, close };
  });
});

// The real server forgets versions only after minutes.
test("the API server in memory refuses watches and pages from before a compaction", async () => {
  const server = new ApiServer();
  const client = clientOf(server);
  for (const name of ["a", "b"]) server.put(configMaps, { metadata: { name } });
  const page = await client.list(configMaps, { limit: 1 });
  server.compact();
  const { signal } = new AbortController();
  const watch = client.watch(configMaps, { resourceVersion: "1", signal });
  await expect(watch[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "Gone" });
  const next = client.list(configMaps, { limit: 1, continue: page.continue ?? "" });
  await expect(next).rejects.toMatchObject({ code: "Gone" });
});
