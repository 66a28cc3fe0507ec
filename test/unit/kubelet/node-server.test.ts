import { once } from "node:events";
import { Agent, request } from "node:https";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Authentication } from "../../../src/kubelet/authentication.ts";
import { NodeServer } from "../../../src/kubelet/node-server.ts";
import { Streams } from "../../../src/kubelet/streams.ts";
import { Store } from "../../../src/runtime/store.ts";
import { AccessReviews } from "../../../src/serving/access-reviews.ts";
import type { TlsMaterial } from "../../../src/serving/certified-server.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { Authority, type KeyAndCertificate } from "../../support/clusters/pki.ts";

const log = createLogger({ level: "silent" });

const STREAM = { path: "/exec/shop/web/main", headers: { connection: "Upgrade", upgrade: "SPDY/3.1" } };

let authority: Authority;
let other: Authority;
let serving: TlsMaterial["certificate"];
let caller: KeyAndCertificate;
let reviews: object[];
let server: NodeServer;
let port: number;
let hostAnswers: boolean;
let tokenStatus: object;
let isAllowed: boolean;
/** Delays the host's answers. */
let hostsWait: Promise<void> | undefined;
let clock: FakeClock;

beforeAll(async () => {
  [authority, other] = await Promise.all([Authority.create("host"), Authority.create("other")]);
  const made = await authority.issue({ commonName: "node", usage: "serverAuth", addresses: ["127.0.0.1"] });
  serving = { cert: made.certificate, key: made.key };
  caller = await authority.issue({ commonName: "api-server", organization: "trusted", usage: "clientAuth" });
});

beforeEach(() => {
  reviews = [];
  hostAnswers = true;
  tokenStatus = { authenticated: false };
  isAllowed = true;
  hostsWait = undefined;
  clock = new FakeClock(Date.now());
});

function nodeServer(clientAuthority: string | undefined): NodeServer {
  const host = fakeClient({
    raw: async ({ path, body = {} }) => {
      if (!hostAnswers) {
        throw kubeError("NotSent", "connection refused", { cluster: "host", resource: "raw" });
      }
      reviews.push(body);
      await hostsWait;
      return path.endsWith("tokenreviews") ? { status: tokenStatus } : { status: { allowed: isAllowed } };
    },
  });
  const proxies = new Store<object>();
  return new NodeServer(
    "west",
    { certificate: serving, clientAuthority },
    {
      source: {
        registry: { member: () => undefined, problem: () => undefined },
        proxies,
        proxiesOn: () => [],
      },
      authentication: new Authentication({ host, clock }),
      reviews: new AccessReviews({ host, clock, allowedLifetimeMs: 300_000, deniedLifetimeMs: 30_000 }),
      streams: new Streams({ clock, log }),
      clock,
      log,
    },
  );
}

async function serve(clientAuthority: string | undefined): Promise<void> {
  server = nodeServer(clientAuthority);
  port = await server.listen("127.0.0.1", 0);
  onTestFinished(() => server.close());
}

function ask(
  options: { certificate?: KeyAndCertificate; agent?: Agent; token?: string; path?: string; headers?: object } = {},
): Promise<number> {
  const { certificate, agent, token, path = "/healthz", headers = {} } = options;
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: "127.0.0.1",
        port,
        path,
        rejectUnauthorized: false,
        ...(agent === undefined ? {} : { agent }),
        ...(certificate === undefined ? {} : { cert: certificate.certificate, key: certificate.key }),
        headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      },
      (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
      },
    );
    asked.on("error", reject);
    asked.end();
  });
}

test("leaves no waiting listener behind when ports are taken", async () => {
  await serve(undefined);
  const warnings: string[] = [];
  const note = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  const next = nodeServer(undefined);
  onTestFinished(() => next.close());
  for (let attempt = 0; attempt < 12; attempt += 1) {
    await expect(next.listen("127.0.0.1", port)).rejects.toMatchObject({ code: "EADDRINUSE" });
  }
  expect(await next.listen("127.0.0.1", 0)).not.toBe(port);
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
});

describe("a virtual node's server", () => {
  test("reads name and groups from a certificate of the host's authority", async () => {
    await serve(authority.pem);
    expect(await ask({ certificate: caller })).toBe(200);
    expect(reviews).toMatchObject([
      {
        spec: {
          user: "api-server",
          groups: ["trusted", "system:authenticated"],
          resourceAttributes: { verb: "get", resource: "nodes", subresource: "healthz", name: "legation-west" },
        },
      },
    ]);
  });

  test("asks the host once for repeated requests", async () => {
    await serve(authority.pem);
    for (let index = 0; index < 5; index += 1) await ask({ certificate: caller });
    for (let index = 0; index < 5; index += 1) await ask({ token: "nonsense" });
    expect(reviews).toHaveLength(2);
  });

  test.each<[string, object, number]>([
    ["that the host knows", { authenticated: true, user: { username: "robot" } }, 200],
    [
      "that the host does not vouch for, though it names a user",
      { authenticated: false, user: { username: "robot" } },
      401,
    ],
    ["of which the host says nothing but a user", { user: { username: "robot" } }, 401],
    ["without a user's name", { authenticated: true, user: { username: "" } }, 401],
  ])("answers a token %s", async (_which, status, expected) => {
    await serve(undefined);
    tokenStatus = status;
    expect(await ask({ token: "token" })).toBe(expected);
  });

  test("admits a user within half a minute of a grant, and refuses one within five minutes of a revocation", async () => {
    await serve(authority.pem);
    const states: number[] = [];
    for (const [allowed, afterMs] of [
      [false, 0],
      [true, 29_000],
      [true, 2_000],
      [false, 299_000],
      [false, 2_000],
    ] as const) {
      isAllowed = allowed;
      await clock.advance(afterMs);
      states.push(await ask({ certificate: caller }));
    }
    expect(states).toEqual([403, 403, 200, 200, 403]);
  });

  test.each<[string, boolean, boolean, number]>([
    ["nobody known", false, true, 401],
    ["a user without the right", true, false, 403],
    ["a user with the right to a pod that is not there", true, true, 404],
  ])("refuses a stream of %s", async (_who, known, allowed, expected) => {
    await serve(authority.pem);
    isAllowed = allowed;
    expect(await ask({ ...STREAM, ...(known ? { certificate: caller } : {}) })).toBe(expected);
  });

  test("accepts addresses as long as commands may be", async () => {
    await serve(authority.pem);
    const path = `/healthz?command=${"x".repeat(200_000)}`;
    expect(await ask({ certificate: caller, path })).toBe(200);
  });

  test("refuses a server certificate, and any certificate while the host publishes no authority", async () => {
    await serve(authority.pem);
    const ofServer = await authority.issue({ commonName: "system:admin", usage: "serverAuth" });
    expect(await ask({ certificate: ofServer })).toBe(401);
    server.renew({ certificate: serving, clientAuthority: undefined });
    expect(await ask({ certificate: caller })).toBe(401);
  });

  test("accepts certificates once an authority is published, on earlier connections too", async () => {
    await serve(undefined);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect(await ask({ certificate: caller, agent })).toBe(401);
    server.renew({ certificate: serving, clientAuthority: authority.pem });
    await expect.poll(() => ask({ certificate: caller, agent }).catch(() => 0)).toBe(200);
  });

  test("forgets a connection whose authority is gone", async () => {
    await serve(authority.pem);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect(await ask({ certificate: caller, agent })).toBe(200);
    server.renew({ certificate: serving, clientAuthority: other.pem });
    await expect.poll(() => ask({ certificate: caller, agent }).catch(() => 0)).toBe(401);
  });

  test.each<[string, object]>([
    ["request", {}],
    ["stream", STREAM],
  ])("serves no further %s on a connection whose authority went while it was in use", async (_what, next) => {
    await serve(authority.pem);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const answered = Promise.withResolvers<void>();
    hostsWait = answered.promise;
    const underWay = ask({ certificate: caller, agent });
    await expect.poll(() => reviews.length).toBe(1);
    server.renew({ certificate: serving, clientAuthority: other.pem });
    answered.resolve();
    expect(await underWay).toBe(200);
    expect(await ask({ certificate: caller, agent, ...next }).catch(() => 0)).toBe(0);
    expect(await ask({ certificate: caller, agent, ...next })).toBe(401);
  });

  test("forgets an expired certificate, also on an earlier connection", async () => {
    await serve(authority.pem);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect(await ask({ certificate: caller, agent })).toBe(200);
    await clock.advance(31 * 24 * 60 * 60_000);
    expect(await ask({ certificate: caller, agent })).toBe(401);
  });

  test("serves no caller while the host cannot be asked, and does not cache that", async () => {
    await serve(authority.pem);
    hostAnswers = false;
    expect(await ask({ certificate: caller })).toBe(500);
    expect(await ask({ token: "any" })).toBe(500);
    hostAnswers = true;
    expect(await ask({ certificate: caller })).toBe(200);
  });
});

/** An accepted connection that sends nothing. */
async function stranger(): Promise<Socket> {
  const socket = connectTcp({ port, host: "127.0.0.1" });
  socket.on("error", () => {});
  await once(socket, "connect");
  // The connection has been accepted once a later one was answered.
  await ask();
  return socket;
}

describe("a server that is closed", () => {
  /** Resolves when the server has closed; time passes meanwhile. */
  async function closing(): Promise<void> {
    const closed = server.close();
    await clock.advance(10_000);
    await closed;
  }

  test("does not wait for a refused caller that keeps its side open", async () => {
    await serve(authority.pem);
    const options = { port, host: "127.0.0.1", rejectUnauthorized: false, allowHalfOpen: true };
    const socket = connectTls(options);
    socket.on("error", () => {});
    const refused = once(socket, "end");
    socket.write("GET /exec/a/b/c HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    socket.resume();
    await refused;
    await closing();
    socket.destroy();
  });

  test("does not wait for a connection that sends nothing", async () => {
    await serve(authority.pem);
    const socket = await stranger();
    await closing();
    socket.destroy();
  });
});

test("does not finish a handshake that began before the authority changed", async () => {
  await serve(authority.pem);
  const socket = await stranger();
  server.renew({ certificate: serving, clientAuthority: other.pem });
  // Long before the server gives up silent connections.
  await expect.poll(() => socket.closed, { timeout: 5_000 }).toBe(true);
});
