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

test("the API server in memory that keeps few changes refuses watches of that resource from before them alone", async () => {
  const server = new ApiServer("fake", Date.now, 2);
  const client = clientOf(server);
  server.put(serviceAccounts, { metadata: { name: "quiet" } });
  for (const name of ["a", "b", "c", "d", "e"]) server.put(configMaps, { metadata: { name } });
  const { signal } = new AbortController();
  const expired = client.watch(configMaps, { resourceVersion: "2", signal });
  await expect(expired[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "Gone" });
  const kept = client.watch(configMaps, { resourceVersion: "5", signal });
  const next = await kept[Symbol.asyncIterator]().next();
  expect(next.value).toMatchObject({ type: "ADDED", object: { metadata: { name: "d" } } });
  const quiet = client.watch(serviceAccounts, { resourceVersion: "1", signal });
  const known = await quiet[Symbol.asyncIterator]().next();
  expect(known.value).toMatchObject({ object: { metadata: { name: "quiet" } } });
});

test("the API server in memory ends its watches in good order", async () => {
  const server = new ApiServer();
  const { signal } = new AbortController();
  const watch = clientOf(server).watch(configMaps, {
    resourceVersion: server.version,
    signal,
    onOpen: () => setImmediate(() => server.endWatches()),
  });
  expect(await watch[Symbol.asyncIterator]().next()).toMatchObject({ done: true });
  expect(server.openWatches).toBe(0);
});
