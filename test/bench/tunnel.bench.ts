import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { get } from "node:https";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { issueAuthority, issueClient, issueServing, readRequest, requestClient } from "../../src/certificates/issue.ts";
import type { ClusterClient, Dial } from "../../src/kube/client.ts";
import type { ClusterCredentials, Identity } from "../../src/kube/credentials.ts";
import { createClusterClient } from "../../src/kube/http-client.ts";
import { loadKubeConfig } from "../../src/kube/kubeconfig.ts";
import { configMaps, namespaces, nodes } from "../../src/kube/resources.ts";
import { realClock } from "../../src/runtime/clock.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { Hub } from "../../src/tunnel/hub.ts";
import { type Figure, quantile } from "./figures.ts";

export interface TunnelBenchOptions {
  /** An administrator's kubeconfig of the member. */
  readonly kubeconfig: string;
  readonly onFigure: (figure: Figure) => void;
}

/** A way to the member's API server. */
interface Way {
  readonly client: ClusterClient;
  /** Opens a connection for one request. */
  readonly open: () => Promise<TLSSocket>;
}

const CLUSTER = "west";
const REQUESTS = 2_000;
const CONCURRENCY = 32;
const ROUNDS = 4;
// Just under the largest object that an API server takes.
const LARGE_BYTES = 1_000_000;
const LARGE_OBJECTS = 20;
const LISTS = 5;
const STREAMS = 2_000;
const STREAMS_AT_ONCE = 200;
const LIFETIME = { lifetimeMs: 86_400_000 };

/**
 * Measures requests, large responses and latency beside streams through an agent in a process of its own, and the same directly,
 * in turns. The best round counts, since others disturb this machine.
 */
export async function benchTunnel({ kubeconfig, onFigure }: TunnelBenchOptions): Promise<void> {
  const credentials = loadKubeConfig({ kubeconfig, env: {} });
  const identity = await credentials.identity();
  await using tunnel = await openTunnel(credentials);
  const ways = {
    direct: wayOf(credentials, identity, undefined),
    tunnelled: wayOf(credentials, identity, tunnel.dial),
  };
  const namespace = `bench-${randomBytes(4).toString("hex")}`;
  await ways.direct.client.create(namespaces, { metadata: { name: namespace } });
  try {
    const data = { text: "x".repeat(LARGE_BYTES) };
    for (let index = 0; index < LARGE_OBJECTS; index += 1) {
      await ways.direct.client.create(configMaps, { metadata: { namespace, name: `large-${index}` }, data });
    }
    const [node] = (await ways.direct.client.list(nodes)).items;
    const name = node?.metadata.name ?? "";
    const requests = await inTurns(ways, ({ client }) =>
      rate(
        REQUESTS,
        inParallel(REQUESTS, CONCURRENCY, () => client.get(nodes, { name })),
      ),
    );
    onFigure({ name: "tunnel: requests", value: requests.tunnelled, unit: "/s" });
    onFigure({
      name: "tunnel: requests / direct ones",
      value: requests.tunnelled / requests.direct,
      unit: "",
      target: { atLeast: 0.8 },
    });
    const list = `/api/v1/namespaces/${namespace}/configmaps`;
    const bulk = await inTurns(ways, async (way) => {
      const socket = await way.open();
      const begin = performance.now();
      let bytes = 0;
      for (let read = 0; read < LISTS; read += 1) bytes += await readBody(socket, list, identity, true);
      socket.destroy();
      return bytes / 1e6 / seconds(begin);
    });
    onFigure({ name: "tunnel: large responses", value: bulk.tunnelled, unit: "MB/s" });
    onFigure({
      name: "tunnel: large responses / direct ones",
      value: bulk.tunnelled / bulk.direct,
      unit: "",
      target: { atLeast: 0.7 },
    });
    const busy = await p99BesideStreams(ways.tunnelled, `${list}/large-0`, identity, name);
    const busyDirect = await p99BesideStreams(ways.direct, `${list}/large-0`, identity, name);
    onFigure({ name: `tunnel: P99 of a request beside ${STREAMS_AT_ONCE} streams`, value: busy, unit: "ms" });
    onFigure({
      name: "tunnel: the same / direct",
      value: busy / busyDirect,
      unit: "",
      target: { atMost: 3 },
    });
  } finally {
    await ways.direct.client.delete(namespaces, { name: namespace });
    for (const { client } of Object.values(ways)) await client.close();
  }
}

function wayOf(credentials: ClusterCredentials, identity: Identity, dial: Dial | undefined): Way {
  const { hostname: host, port } = new URL(credentials.server);
  const limits = { perSecond: 1e6, burst: 1e6 };
  return {
    client: createClusterClient({ cluster: CLUSTER, credentials, limits, dial }),
    open: async () => {
      const { ca, cert, key } = identity;
      const reached =
        dial === undefined ? { host, port: Number(port) } : { socket: await dial(AbortSignal.timeout(30_000)) };
      const tls = connectTls({
        ...reached,
        servername: "localhost",
        checkServerIdentity: () => undefined,
        ...{ ca, cert, key },
      });
      await once(tls, "secureConnect");
      return tls;
    },
  };
}

interface Tunnel extends AsyncDisposable {
  readonly dial: Dial;
}

async function openTunnel({ server }: ClusterCredentials): Promise<Tunnel> {
  const now = { now: Date.now(), ...LIFETIME };
  const authority = await issueAuthority("hub", now);
  const serving = await issueServing(authority, ["127.0.0.1"], now);
  const { request, key } = await requestClient();
  const cert = issueClient(authority, readRequest(request)?.publicKey ?? "", { name: CLUSTER, uid: "1" }, now);
  const hub = new Hub(
    { ...serving, authorities: authority.cert },
    {
      refusal: () => undefined,
      homeApiRefusal: () => undefined,
      onFacts: () => {},
      certify: () => Promise.reject(new Error("the bench issues no certificate")),
      authorities: () => authority.cert,
      wantsCredentials: () => false,
      onCredentials: () => {},
    },
    { onChange: () => {}, clock: realClock, log: createLogger({ level: "error" }) },
  );
  const port = await hub.listen("127.0.0.1", 0);
  const { hostname: host, port: targetPort } = new URL(server);
  const settings = {
    server: `https://127.0.0.1:${port}`,
    identity: { ca: authority.cert, cert, key },
    target: { host, port: Number(targetPort) },
  };
  const agent = fork(join(import.meta.dirname, "tunnel-agent.ts"), [JSON.stringify(settings)]);
  await once(agent, "message");
  return {
    dial: (signal) => hub.dial(CLUSTER, signal),
    [Symbol.asyncDispose]: async () => {
      agent.kill();
      await hub.close();
    },
  };
}

/** Returns the best of several rounds of each way. Greater is better. */
async function inTurns(
  ways: { readonly direct: Way; readonly tunnelled: Way },
  measure: (way: Way) => Promise<number>,
): Promise<{ readonly direct: number; readonly tunnelled: number }> {
  const best = { direct: 0, tunnelled: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    best.direct = Math.max(best.direct, await measure(ways.direct));
    best.tunnelled = Math.max(best.tunnelled, await measure(ways.tunnelled));
  }
  return best;
}

/** Returns the P99 latency, in ms, of requests one after another beside streams with connections of their own. */
async function p99BesideStreams(way: Way, path: string, identity: Identity, name: string): Promise<number> {
  let streaming = true;
  const streams = inParallel(STREAMS, STREAMS_AT_ONCE, async () => {
    const socket = await way.open();
    await readBody(socket, path, identity, false);
    socket.destroy();
  }).finally(() => {
    streaming = false;
  });
  const latencies: number[] = [];
  while (streaming) {
    const begin = performance.now();
    await way.client.get(nodes, { name });
    latencies.push(performance.now() - begin);
  }
  await streams;
  return quantile(latencies, 0.99);
}

/** Reads a response on the given connection. Returns its size in bytes. */
async function readBody(socket: TLSSocket, path: string, identity: Identity, keepAlive: boolean): Promise<number> {
  const { authorization } = identity;
  const headers = {
    ...(authorization === undefined ? {} : { authorization }),
    connection: keepAlive ? "keep-alive" : "close",
  };
  const request = get({ createConnection: () => socket, path, headers });
  const [response] = await once(request, "response");
  if (response.statusCode !== 200) throw new Error(`${path}: status ${response.statusCode}`);
  let bytes = 0;
  for await (const chunk of response) bytes += chunk.length;
  return bytes;
}

async function rate(count: number, work: Promise<void>): Promise<number> {
  const begin = performance.now();
  await work;
  return count / seconds(begin);
}

function seconds(begin: number): number {
  return (performance.now() - begin) / 1000;
}

async function inParallel(count: number, atOnce: number, run: () => Promise<unknown>): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await run();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
