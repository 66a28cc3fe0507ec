import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type Authority,
  type Certificate,
  issueAuthority,
  issueClient,
  issueServing,
  readRequest,
  requestClient,
} from "../../../src/certificates/issue.ts";
import type { ClusterClient, PathUpgrades } from "../../../src/kube/client.ts";
import type { ClusterCredentials, Identity } from "../../../src/kube/credentials.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Agent } from "../../../src/tunnel/agent.ts";
import type { AgentIdentity } from "../../../src/tunnel/agent-session.ts";
import { type Gatekeeper, Hub } from "../../../src/tunnel/hub.ts";

const log = createLogger({ level: "silent" as "error" });
const lifetime = { now: Date.now(), lifetimeMs: 3_600_000 };
let authority: Authority;
let serving: Certificate;
let memberAuthority: Authority;
let member: Server;
let memberPort: number;

beforeAll(async () => {
  authority = await issueAuthority("hub", lifetime);
  serving = await issueServing(authority, ["127.0.0.1"], lifetime);
  memberAuthority = await issueAuthority("member", lifetime);
  const own = await issueServing(memberAuthority, ["kubernetes.default.svc"], lifetime);
  member = createServer({ cert: own.cert, key: own.key, ALPNProtocols: ["h2", "http/1.1"] }, (request, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ path: request.url }));
  });
  member.on("upgrade", (_request, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n");
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => member.listen(0, "127.0.0.1", resolve));
  memberPort = (member.address() as AddressInfo).port;
});
afterAll(() => {
  member.closeAllConnections();
  member.close();
});

async function agentIdentity({ cluster, uid }: AgentIdentity): Promise<Identity> {
  const { request, key } = await requestClient();
  const cert = issueClient(authority, readRequest(request)?.publicKey ?? "", { name: cluster, uid }, lifetime);
  return { ca: authority.cert, cert, key };
}

function credentialsOf(server: string, identity: Identity): ClusterCredentials {
  return { server, source: "test", insecureSkipTlsVerify: false, identity: () => identity, refresh: () => {} };
}

interface Rig {
  readonly hub: Hub;
  readonly url: string;
  readonly refusals: Map<string, string>;
}

async function startHub(): Promise<Rig> {
  const refusals = new Map<string, string>();
  const gatekeeper: Gatekeeper = {
    refusal: ({ cluster }) => refusals.get(cluster),
    certify: () => Promise.reject(new Error("not in this test")),
    authorities: () => authority.cert,
    wantsCredentials: () => false,
    onCredentials: () => {},
  };
  const hub = new Hub({ ...serving, authorities: authority.cert }, gatekeeper, {
    onChange: () => {},
    clock: realClock,
    log,
  });
  const port = await hub.listen("127.0.0.1", 0);
  onTestFinished(() => hub.close());
  return { hub, url: `https://127.0.0.1:${port}`, refusals };
}

async function startAgent(
  url: string,
  identity: Identity,
  target = { host: "127.0.0.1", port: memberPort },
): Promise<Agent> {
  const hub: ClusterClient & PathUpgrades = createClusterClient({
    cluster: "hub",
    credentials: credentialsOf(url, identity),
  });
  const stopping = new AbortController();
  const agent = new Agent({
    hub,
    target,
    credentials: () => Promise.reject(new Error("not in this test")),
    onAuthorities: () => {},
    clock: realClock,
    log,
  });
  const running = agent.run(stopping.signal);
  onTestFinished(async () => {
    stopping.abort();
    await running;
    await hub.close();
  });
  await vi.waitFor(() => expect(agent.connected).toBe(true), { timeout: 5_000 });
  return agent;
}

function memberClient(hub: Hub, cluster: string): ClusterClient {
  const credentials = credentialsOf("https://kubernetes.default.svc", { ca: memberAuthority.cert });
  const client = createClusterClient({ cluster, credentials, dial: (signal) => hub.dial(cluster, signal) });
  onTestFinished(() => client.close());
  return client;
}

describe("a tunnel", () => {
  test("carries requests to the API server of the agent's cluster", async () => {
    const { hub, url } = await startHub();
    await startAgent(url, await agentIdentity({ cluster: "west", uid: "1" }));
    const client = memberClient(hub, "west");
    await expect(client.raw({ method: "GET", path: "/version" })).resolves.toEqual({ path: "/version" });
    expect(hub.state("west")).toMatchObject({ connected: true, connections: 1, streams: 1 });
  });

  test("carries upgraded connections, also of a server that prefers HTTP/2", async () => {
    const { hub, url } = await startHub();
    await startAgent(url, await agentIdentity({ cluster: "west", uid: "1" }));
    const answer = await memberClient(hub, "west").upgrade(pods, { namespace: "shop", name: "web" }, "exec", {
      method: "POST",
      query: new URLSearchParams(),
      protocol: "SPDY/3.1",
      headers: {},
    });
    const socket = answer.socket;
    if (socket === undefined) throw new Error("not upgraded");
    socket.write("hello");
    await expect(once(socket, "data")).resolves.toEqual([Buffer.from("hello")]);
    socket.destroy();
  });

  test("says so when no agent is connected", async () => {
    const { hub } = await startHub();
    await expect(memberClient(hub, "west").raw({ method: "GET", path: "/" })).rejects.toThrow(
      "no agent of west has connected to this controller",
    );
  });
});
