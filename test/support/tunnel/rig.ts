import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import {
  type Authority,
  issueAuthority,
  issueClient,
  issueServing,
  readRequest,
  requestClient,
} from "../../../src/certificates/issue.ts";
import type { ClusterClient, Dial, PathUpgrades } from "../../../src/kube/client.ts";
import type { ClusterCredentials, RequestIdentity } from "../../../src/kube/credentials.ts";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { type Clock, realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Agent } from "../../../src/tunnel/agent.ts";
import type { AgentIdentity } from "../../../src/tunnel/agent-session.ts";
import type { DialTarget } from "../../../src/tunnel/dialled.ts";
import { HomeApiListener } from "../../../src/tunnel/home-api-listener.ts";
import { type Gatekeeper, Hub } from "../../../src/tunnel/hub.ts";
import type { MemberCredentials } from "../../../src/tunnel/messages.ts";
import { RELAY_SERVER_NAME } from "../../../src/tunnel/relay.ts";

const HOUR_MS = 3_600_000;
const validity = { now: Date.now(), lifetimeMs: HOUR_MS };
// Keys take processor time: tests of a file share them.
export const hubAuthority: Promise<Authority> = issueAuthority("hub", validity);
const hubServing = hubAuthority.then((authority) =>
  issueServing(authority, ["127.0.0.1", RELAY_SERVER_NAME], validity),
);
const memberAuthority = issueAuthority("member", validity);
const memberServing = memberAuthority.then((authority) =>
  issueServing(authority, ["kubernetes.default.svc"], validity),
);
const clientRequest = requestClient();

/** Returns what an agent presents: by default a valid certificate of the hub's authority. */
export async function identityOf(
  { cluster, uid, join }: AgentIdentity,
  { authority, lifetimeMs = HOUR_MS }: { readonly authority?: Authority; readonly lifetimeMs?: number } = {},
): Promise<RequestIdentity> {
  const { request, key } = await clientRequest;
  const { publicKey = "" } = readRequest(request) ?? {};
  const own = await hubAuthority;
  const subject = { name: cluster, uid, join };
  return {
    ca: own.cert,
    cert: issueClient(authority ?? own, publicKey, subject, { now: validity.now, lifetimeMs }),
    key,
  };
}

export interface HubRig {
  readonly hub: Hub;
  readonly url: string;
  readonly port: number;
  /** Why the agents of a cluster may not connect. */
  readonly refusals: Map<string, string>;
  /** Clusters whose agents came or went. */
  readonly changes: string[];
  readonly credentials: MemberCredentials[];
  /** Lines of its log. */
  readonly logged: string[];
}

/** Starts a hub on loopback, which closes when the test ends. */
export async function startHub({
  clock = realClock,
  port = 0,
  gatekeeper = {},
  homeApi,
}: {
  readonly clock?: Clock;
  readonly port?: number;
  readonly gatekeeper?: Partial<Gatekeeper>;
  readonly homeApi?: DialTarget;
} = {}): Promise<HubRig> {
  const refusals = new Map<string, string>();
  const changes: string[] = [];
  const credentials: MemberCredentials[] = [];
  const logged: string[] = [];
  const log = createLogger({ level: "info", destination: { write: (line: string) => logged.push(line) } });
  const authorities = (await hubAuthority).cert;
  const hub = new Hub(
    { ...(await hubServing), authorities },
    {
      refusal: ({ cluster }) => refusals.get(cluster),
      homeApiRefusal: () => undefined,
      relayRefusal: () => undefined,
      onFacts: () => {},
      certify: () => Promise.reject(new Error("not in this test")),
      authorities: () => authorities,
      wantsCredentials: () => false,
      onCredentials: (_cluster, _account, received) => credentials.push(received),
      ...gatekeeper,
    },
    { onChange: (cluster) => changes.push(cluster), homeApi, clock, log },
  );
  const listening = await hub.listen("127.0.0.1", port);
  onTestFinished(() => hub.close());
  return { hub, port: listening, url: `https://127.0.0.1:${listening}`, refusals, changes, credentials, logged };
}

function credentialsOf(
  server: string,
  identity: () => RequestIdentity,
  more: Partial<ClusterCredentials> = {},
): ClusterCredentials {
  return { server, source: "test", insecureSkipTlsVerify: false, identity, refresh: () => {}, ...more };
}

/** Returns a client of the hub that presents this identity. */
export function hubClient(url: string, identity: RequestIdentity, proxyUrl?: string): ClusterClient & PathUpgrades {
  const credentials = credentialsOf(
    url,
    () => identity,
    proxyUrl === undefined ? {} : { environmentProxyUrl: proxyUrl },
  );
  const client = createClusterClient({ cluster: "hub", credentials });
  onTestFinished(() => client.close());
  return client;
}

export interface AgentRig {
  readonly agent: Agent;
  /** Takes connections of pods, once the test lets it listen. */
  readonly listener: HomeApiListener;
  /** Messages of its log. */
  readonly logged: string[];
  stop(): Promise<void>;
}

/** Runs an agent until the test ends. */
export function runAgent(
  url: string,
  identity: RequestIdentity,
  target: DialTarget,
  {
    clock = realClock,
    credentials = () => Promise.reject(new Error("not in this test")),
    onAuthorities = () => {},
    proxyUrl,
    homeAddress,
  }: {
    readonly clock?: Clock;
    readonly credentials?: () => Promise<MemberCredentials>;
    readonly onAuthorities?: (authorities: string) => void;
    readonly proxyUrl?: string;
    /** Leads pods to the home API, by a listener that is said to be at this address. */
    readonly homeAddress?: string;
  } = {},
): AgentRig {
  const logged: string[] = [];
  const log = createLogger({
    level: "info",
    destination: { write: (line: string) => logged.push(line) },
  });
  const stopping = new AbortController();
  const hub = hubClient(url, identity, proxyUrl);
  const listener = new HomeApiListener({ hub, clock, log });
  const home = homeAddress === undefined ? undefined : { listener, address: async () => homeAddress };
  const agent = new Agent({ hub, target, version: "1.2.3", home, credentials, onAuthorities, clock, log });
  const running = agent.run(stopping.signal);
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running;
  };
  onTestFinished(stop);
  onTestFinished(() => listener.close());
  return { agent, logged, listener, stop };
}

/** Starts a member's API server, which answers each request with its path. */
export async function startMember(): Promise<{ readonly server: Server; readonly target: DialTarget }> {
  const server = createServer({ ...(await memberServing), ALPNProtocols: ["h2", "http/1.1"] }, (request, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ path: request.url }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, target: { host: "127.0.0.1", port: (server.address() as AddressInfo).port } };
}

/** Returns a client of a member behind an agent; without `dial`, the controller's. */
export async function memberClient(
  hub: Pick<Hub, "dial">,
  cluster: string,
  dial: Dial = (signal) => hub.dial(cluster, signal),
): Promise<ClusterClient & PathUpgrades> {
  const identity = { ca: (await memberAuthority).cert };
  const credentials = credentialsOf("https://kubernetes.default.svc", () => identity);
  const client = createClusterClient({ cluster, credentials, dial });
  onTestFinished(() => client.close());
  return client;
}
