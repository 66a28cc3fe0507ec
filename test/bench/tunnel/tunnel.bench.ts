import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { get } from "node:https";
import type { TLSSocket } from "node:tls";
import { configMaps, namespaces, nodes } from "../../../src/kube/resources.ts";
import type { ClusterInfo } from "../../support/clusters/types.ts";
import { type Figure, quantile } from "../figures.ts";
import { startExecNode } from "./exec-node.ts";
import { measureBesideStreams, type Pace, p99Alone } from "./latency-beside-streams.ts";
import { openWays, WAYS, type Way, type WayName, type Ways } from "./ways.ts";

export interface TunnelBenchOptions {
  /** A cluster without nodes. */
  readonly member: ClusterInfo;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

const REQUESTS = 4_000;
const CONCURRENCY = 32;
const ROUNDS = 9;
// Just under the largest object that an API server takes.
const LARGE_BYTES = 1_000_000;
const LARGE_OBJECTS = 20;
const LISTS = 5;
// Live streams leave room on two cores, so that a request waits for other bytes and not for the processor: 25 begin in each
// second, or 200 together every eight seconds. Fast ones fill the processor.
const PACES: readonly (readonly [name: string, pace: Pace, target?: { readonly atMost: number }])[] = [
  ["live streams", { overMs: 8_000, isEven: true }, { atMost: 3 }],
  ["bursts of live streams", { overMs: 8_000, isEven: false }, { atMost: 3 }],
  ["fast streams", { overMs: 0, isEven: false }],
];

/**
 * Measures requests, large responses, and latency beside exec streams: directly, through an agent in a process of its own, and
 * through konnectivity, in turns.
 */
export async function benchTunnel({ member, onProgress, onFigure }: TunnelBenchOptions): Promise<void> {
  await using ways = await openWays(member, onProgress);
  const { client } = ways.direct;
  const namespace = `bench-${randomBytes(4).toString("hex")}`;
  await client.create(namespaces, { metadata: { name: namespace } });
  try {
    await using node = await startExecNode(client, namespace, onProgress);
    onProgress("requests");
    const requests = await medianOf(ways, (way) => requestRate(way, node.name));
    tellRates("requests", "/s", requests, 0.8, onFigure);
    onProgress("large responses");
    const data = { text: "x".repeat(LARGE_BYTES) };
    for (let index = 0; index < LARGE_OBJECTS; index += 1) {
      await client.create(configMaps, { metadata: { namespace, name: `large-${index}` }, data });
    }
    const list = `/api/v1/namespaces/${namespace}/configmaps`;
    const bulk = await medianOf(ways, (way) => readRate(way, list, member.token));
    tellRates("large responses", "MB/s", bulk, 0.7, onFigure);
    for (const each of WAYS) {
      onProgress(`requests alone and beside exec streams: ${each}`);
      const alone = await p99Alone(ways[each], node);
      onFigure({ name: `tunnel: P99 of a request, ${each}`, value: alone, unit: "ms" });
      for (const [streams, pace, target] of PACES) {
        const { p99Ms, streamsPerSecond } = await measureBesideStreams(ways[each], { node, member, pace });
        const name = `tunnel: P99 beside ${streams}`;
        onFigure({ name: `${name}, ${each}`, value: p99Ms, unit: "ms" });
        const aim = each === "agent" && target !== undefined ? { target } : {};
        onFigure({ name: `${name} / alone, ${each}`, value: p99Ms / alone, unit: "", ...aim });
        onFigure({ name: `tunnel: ${streams}, ${each}`, value: streamsPerSecond, unit: "/s" });
      }
    }
  } finally {
    await client.delete(namespaces, { name: namespace });
  }
}

function tellRates(
  what: string,
  unit: string,
  rates: Readonly<Record<WayName, number>>,
  atLeast: number,
  onFigure: (figure: Figure) => void,
): void {
  for (const way of WAYS) onFigure({ name: `tunnel: ${what}, ${way}`, value: rates[way], unit });
  onFigure({
    name: `tunnel: ${what}, agent / direct`,
    value: rates.agent / rates.direct,
    unit: "",
    target: { atLeast },
  });
}

/** Returns the median of several rounds of each way, in turns, since others disturb this machine. */
async function medianOf(
  ways: Ways,
  measure: (way: Way) => Promise<number>,
): Promise<Readonly<Record<WayName, number>>> {
  const rates: Record<WayName, number[]> = { direct: [], agent: [], konnectivity: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const way of WAYS) rates[way].push(await measure(ways[way]));
  }
  const median = (way: WayName): number => quantile(rates[way], 0.5);
  return { direct: median("direct"), agent: median("agent"), konnectivity: median("konnectivity") };
}

async function requestRate({ client }: Way, name: string): Promise<number> {
  const begin = performance.now();
  let left = REQUESTS;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await client.get(nodes, { name });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return REQUESTS / seconds(begin);
}

/** Returns MB/s of lists on one connection. */
async function readRate(way: Way, path: string, token: string): Promise<number> {
  const socket = await way.open();
  const begin = performance.now();
  let bytes = 0;
  for (let read = 0; read < LISTS; read += 1) bytes += await readBody(socket, path, token);
  socket.destroy();
  return bytes / 1e6 / seconds(begin);
}

/** Reads a response on the given connection. Returns its size in bytes. */
async function readBody(socket: TLSSocket, path: string, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, connection: "keep-alive" };
  const request = get({ createConnection: () => socket, path, headers });
  const [response] = await once(request, "response");
  if (response.statusCode !== 200) throw new Error(`${path}: status ${response.statusCode}`);
  let bytes = 0;
  for await (const chunk of response) bytes += chunk.length;
  return bytes;
}

function seconds(begin: number): number {
  return (performance.now() - begin) / 1000;
}
