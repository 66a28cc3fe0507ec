import { createServer as createHttpServer, type Server } from "node:http";
import { connect as connectTcp, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { ClusterClient, UpgradeOptions } from "../../../../src/kube/client.ts";
import type { ClusterCredentials, RequestIdentity } from "../../../../src/kube/credentials.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { createClusterClient } from "../../../../src/kube/http-client.ts";
import type { ClientLimits } from "../../../../src/kube/limits.ts";
import { pods } from "../../../../src/kube/resources.ts";
import { kubeErrorOf } from "../../../support/fault-server/connect.ts";
import { connectProxy } from "../../../support/tunnel/connect-proxy.ts";
import { accept, headerLines, refuse, UpgradeServer } from "../upgrade-server.ts";
import { authority, certificateOf, credentialsFor, serving } from "./people.ts";

const web = { namespace: "default", name: "web" };
const query = new URLSearchParams([
  ["command", "echo"],
  ["command", "a b&c"],
  ["stdout", "true"],
]);
const spdy: UpgradeOptions = {
  method: "POST",
  query,
  protocol: "SPDY/3.1",
  headers: { "x-stream-protocol-version": ["v4.channel.k8s.io", "v3.channel.k8s.io"] },
};

let server: UpgradeServer;
const clients: ClusterClient[] = [];
const helpers: Server[] = [];
beforeEach(async () => {
  server = await UpgradeServer.start({ key: serving.key, cert: serving.certificate, ca: authority.pem });
});
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  for (const helper of helpers.splice(0)) helper.close();
  await server[Symbol.asyncDispose]();
});

function identityOf(name: "jane" | "john"): RequestIdentity {
  return { ...certificateOf(name), authorization: `Bearer ${name}` };
}

function connect(options: Partial<ClusterCredentials> = {}, limits: Partial<ClientLimits> = {}): ClusterClient {
  const client = createClusterClient({
    cluster: "west",
    limits: { timeoutMs: 5_000, connectTimeoutMs: 1_000, ...limits },
    credentials: credentialsFor(server.url, { identity: () => identityOf("jane"), ...options }),
  });
  clients.push(client);
  return client;
}

async function upgraded(client: ClusterClient, options: Partial<UpgradeOptions> = {}): Promise<Duplex> {
  const { socket } = await client.upgrade(pods, web, "exec", { ...spdy, ...options });
  if (socket === undefined) throw new Error("the upgrade was refused");
  return socket;
}

async function read(socket: Duplex, length: number): Promise<string> {
  let text = "";
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    if (text.length >= length) break;
  }
  return text;
}

function closed(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.resume().once("close", resolve);
  });
}

test.each(["directly", "through a proxy"])(
  "resumes the TLS session of an earlier upgrade %s, also after a garbage collection",
  async (way) => {
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("gc");
    const proxy = await connectProxy();
    onTestFinished(() => proxy.close());
    const client = connect(way === "directly" ? {} : { proxyUrl: proxy.url });
    const sessions: boolean[] = [];
    server.onUpgrade = (_request, socket) => {
      sessions.push(socket instanceof TLSSocket && socket.isSessionReused());
      accept(socket);
    };
    for (let count = 1; count <= 3; count += 1) {
      const socket = await upgraded(client);
      socket.destroy();
      await closed(socket);
      if (typeof collect === "function") collect();
    }
    expect(sessions).toEqual([false, true, true]);
  },
);

describe("an upgrade", () => {
  test("sends method, query, protocol, every header line, and the credentials", async () => {
    const socket = await upgraded(connect({ server: `${server.url}/k8s/clusters/c-1` }));
    const [request] = server.requests;
    if (request === undefined) throw new Error("no request came");
    expect(`${request.method} ${request.url}`).toBe(
      "POST /k8s/clusters/c-1/api/v1/namespaces/default/pods/web/exec?command=echo&command=a+b%26c&stdout=true",
    );
    expect(request.headers).toMatchObject({
      connection: "upgrade",
      upgrade: "SPDY/3.1",
      authorization: "Bearer jane",
      accept: "*/*",
      "content-length": "0",
    });
    expect(headerLines(request, "x-stream-protocol-version")).toEqual(["v4.channel.k8s.io", "v3.channel.k8s.io"]);
    expect(request.socket instanceof TLSSocket && request.socket.getPeerCertificate().subject.CN).toBe("jane");
    socket.destroy();
  });

  test("returns the response's headers, and loses no byte that came with them", async () => {
    server.onUpgrade = (_request, socket) => accept(socket, "first");
    const answer = await connect().upgrade(pods, web, "exec", spdy);
    expect(answer.headers).toMatchObject({ upgrade: "SPDY/3.1", "x-stream-protocol-version": "v4.channel.k8s.io" });
    expect(answer.socket === undefined ? "" : await read(answer.socket, 5)).toBe("first");
  });

  test("carries bytes both ways", async () => {
    server.onUpgrade = (_request, socket) => {
      accept(socket);
      socket.pipe(socket);
    };
    const socket = await upgraded(connect(), { method: "GET", protocol: "websocket" });
    socket.write("there and back");
    expect(await read(socket, 14)).toBe("there and back");
  });

  test("uses a connection of its own, and leaves none behind", async () => {
    server.onUpgrade = (_request, socket) => refuse(socket, 500, "no");
    const client = connect();
    for (let count = 1; count <= 3; count += 1) {
      await client.upgrade(pods, web, "exec", spdy);
      expect(server.connections).toBe(count);
    }
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test("waits for no slot", async () => {
    const client = connect({}, { concurrency: 1, perSecond: 0.001, burst: 1 });
    const stuck = client.list(pods).catch(() => {});
    const sockets = await Promise.all([upgraded(client), upgraded(client), upgraded(client)]);
    expect(new Set(sockets).size).toBe(3);
    await client.close();
    await stuck;
  });

  test("goes through an HTTP proxy's tunnel, to a server with a name apart from its address", async () => {
    const asked: (string | undefined)[] = [];
    const proxy = createHttpServer();
    helpers.push(proxy);
    proxy.on("connect", (request, socket) => {
      asked.push(request.url);
      const upstream = connectTcp(Number(request.url?.split(":")[1]), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        upstream.pipe(socket).pipe(upstream);
      });
      for (const end of [socket, upstream]) end.on("error", () => {});
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const address = proxy.address();
    const port = typeof address === "object" ? address?.port : undefined;
    server.onUpgrade = (_request, socket) => accept(socket, "hello");
    const client = connect({ proxyUrl: `http://127.0.0.1:${port}`, tlsServerName: "api.example" });
    expect(await read(await upgraded(client), 5)).toBe("hello");
    expect(asked).toEqual([new URL(server.url).host]);
  });
});

describe("a refusal", () => {
  test("is returned as it is", async () => {
    server.onUpgrade = (_request, socket) => refuse(socket, 404, 'container not found ("main")');
    const answer = await connect().upgrade(pods, web, "exec", spdy);
    expect(answer).toMatchObject({
      status: 404,
      headers: { "content-type": "text/plain", "x-reason": "told" },
      text: 'container not found ("main")',
    });
    expect(answer.socket).toBeUndefined();
  });

  test("refreshes the credentials once when they are refused", async () => {
    let token = "old";
    let refreshed = 0;
    const refresh = (): void => {
      refreshed += 1;
      token = "new";
    };
    const client = connect({ identity: () => ({ ...identityOf("jane"), authorization: token }), refresh });
    server.onUpgrade = ({ headers }, socket) =>
      headers.authorization === "new" ? accept(socket) : refuse(socket, 401, "Unauthorized");
    await upgraded(client);
    expect(refreshed).toBe(1);
    server.onUpgrade = (_request, socket) => refuse(socket, 401, "Unauthorized");
    expect(await client.upgrade(pods, web, "exec", spdy)).toMatchObject({ status: 401, text: "Unauthorized" });
    expect(refreshed).toBe(2);
    expect(server.requests).toHaveLength(4);
  });
});

describe("an upgrade without a response", () => {
  test.each<[string, "AnswerLost" | "NotSent", () => ClusterClient]>([
    ["a server that is silent", "AnswerLost", () => connect({}, { timeoutMs: 2_000 })],
    ["a port that nobody listens on", "NotSent", () => connect({ server: "https://127.0.0.1:1" })],
    ["a server that cannot be trusted", "NotSent", () => connect({ tlsServerName: "other.example" })],
  ])("from %s is %s", async (_case, code, client) => {
    server.onUpgrade = () => {};
    const error = await kubeErrorOf(client().upgrade(pods, web, "exec", spdy));
    expect(error).toMatchObject({
      code,
      cluster: "west",
      verb: "create",
      resource: "pods/exec",
      namespace: "default",
      objectName: "web",
    });
    await expect.poll(() => server.sockets.size).toBe(0);
  });

  test("is AnswerLost when the server cuts the connection, and not repeated", async () => {
    server.onUpgrade = (_request, socket) => socket.destroy();
    expect((await kubeErrorOf(connect().upgrade(pods, web, "exec", spdy))).code).toBe("AnswerLost");
    expect(server.requests).toHaveLength(1);
  });

  test("is not awaited after the caller aborted", async () => {
    server.onUpgrade = () => {};
    const abort = new AbortController();
    const error = kubeErrorOf(connect().upgrade(pods, web, "exec", { ...spdy, signal: abort.signal }));
    await expect.poll(() => server.requests.length).toBe(1);
    abort.abort();
    expect((await error).code).toBe("Aborted");
    await expect.poll(() => server.sockets.size).toBe(0);
  });
});

describe("an open stream", () => {
  test("outlives a change of the client certificate", async () => {
    let name: "jane" | "john" = "jane";
    server.onUpgrade = (_request, socket) => {
      accept(socket);
      socket.pipe(socket);
    };
    const client = connect({ identity: () => identityOf(name) });
    const first = await upgraded(client);
    name = "john";
    const second = await upgraded(client);
    for (const socket of [first, second]) {
      socket.write("still here");
      expect(await read(socket, 10)).toBe("still here");
    }
  });

  test("is cut when the client is closed, and none is opened afterwards", async () => {
    const client = connect();
    const socket = await upgraded(client);
    await client.close();
    await closed(socket);
    await expect.poll(() => server.sockets.size).toBe(0);
    expect((await kubeErrorOf(client.upgrade(pods, web, "exec", spdy))).code).toBe("NotSent");
  });

  test("ends nothing else when the server resets it before a listener is attached", async () => {
    await using plain = await UpgradeServer.start();
    plain.onUpgrade = (_request, socket) => {
      accept(socket);
      if (socket instanceof Socket) socket.resetAndDestroy();
    };
    const answer = await connect({ server: plain.url })
      .upgrade(pods, web, "exec", spdy)
      .catch((error: unknown) => error);
    // The reset may overtake the answer.
    if (answer instanceof KubeError) expect(answer.code).toBe("AnswerLost");
    else await expect.poll(() => plain.sockets.size).toBe(0);
  });
});
