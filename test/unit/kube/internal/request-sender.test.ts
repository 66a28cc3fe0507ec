import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import type { ClusterCredentials } from "../../../../src/kube/credentials.ts";
import { createClusterClient, shareConnections } from "../../../../src/kube/http-client.ts";
import { type ExchangeHandler, RequestSender } from "../../../../src/kube/internal/request-sender.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { anonymous } from "../../../support/fault-server/connect.ts";
import { FaultServer } from "../../../support/fault-server/fault-server.ts";

/** A client of a server whose URL ends with `path`, and the server. */
async function served(path = "", more: Partial<ClusterCredentials> = {}) {
  const server = await FaultServer.start();
  const credentials = { ...anonymous(`${server.url}${path}`), ...more };
  const client = createClusterClient({ cluster: "west", credentials, userAgent: "legation/1" });
  onTestFinished(async () => {
    await client.close();
    await server.stop();
  });
  return { server, client };
}

test("asks below the path of a server that is behind a proxy", async () => {
  const { server, client } = await served("/k8s/clusters/c-1");
  await client.find(pods, { namespace: "shop", name: "web" }).catch(() => undefined);
  expect(server.requests[0]?.path).toBe("/k8s/clusters/c-1/api/v1/namespaces/shop/pods/web");
});

test("says who asks and what it takes, whatever the headers of the credentials say", async () => {
  const headers = { "user-agent": "other", accept: "text/plain", "impersonate-user": "alice" };
  const { server, client } = await served("", { identity: () => ({ headers, authorization: "Bearer t" }) });
  await client.raw({ method: "GET", path: "/version" });
  expect(server.requests[0]?.headers).toMatchObject({
    "user-agent": "legation/1",
    accept: "application/json",
    "impersonate-user": "alice",
    authorization: "Bearer t",
  });
});

test("keeps its connections after deletions with a body", async () => {
  const { server, client } = await served();
  for (const name of ["a", "b", "c", "d"]) {
    server.api.put(pods, { metadata: { namespace: "shop", name } });
    await client.delete(pods, { namespace: "shop", name }, { gracePeriodSeconds: 0 });
  }
  expect(server.requests.map(({ body }) => body !== "")).toEqual([true, true, true, true]);
  // A pool opens a second one for a request that follows at once.
  expect(server.connections).toBeLessThanOrEqual(2);
});

test("shares connections with clients of other clusters behind the same server, and leaves them open when it is closed", async () => {
  const { server } = await served();
  const connections = shareConnections(anonymous(server.url));
  onTestFinished(() => connections.destroy(new Error("over")));
  const clients = ["west", "east", "north"].map((cluster) =>
    createClusterClient({ cluster, credentials: anonymous(`${server.url}/${cluster}`), connections }),
  );
  const [west, ...others] = clients;
  for (const client of clients) await client.find(pods, { namespace: "shop", name: "web" }).catch(() => undefined);
  await west?.close();
  await expect(west?.find(pods, { namespace: "shop", name: "web" })).rejects.toThrow("the client was closed");
  for (const client of others) await client.find(pods, { namespace: "shop", name: "web" }).catch(() => undefined);
  expect(server.requests.map(({ path }) => path.split("/")[1])).toEqual(["west", "east", "north", "east", "north"]);
  expect(server.connections).toBeLessThanOrEqual(2);
});

test("refuses what is sent once it is closed, and cuts a stream that comes late", async () => {
  const limits = { concurrency: 1, perSecond: 1, burst: 1, queueTimeoutMs: 1, timeoutMs: 1, connectTimeoutMs: 1 };
  const sender = new RequestSender({ credentials: anonymous("http://127.0.0.1:1"), limits }, "legation/1");
  await sender.close();
  const refusals: Error[] = [];
  const handler: ExchangeHandler = { refuse: (cause) => void refusals.push(cause) };
  sender.send("requests", { verb: "get", method: "GET", plural: "pods", path: "/" }, {}, handler);
  expect(refusals).toHaveLength(1);
  const late = new PassThrough();
  sender.keep(late);
  expect(late.destroyed).toBe(true);
});
