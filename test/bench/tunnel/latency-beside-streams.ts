import { fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nodes } from "../../../src/kube/resources.ts";
import type { ClusterInfo } from "../../support/clusters/types.ts";
import { quantile } from "../figures.ts";
import { giveRest, sharesImpossible } from "../shares.ts";
import type { ExecClientMessage, ExecClientSettings } from "./exec-client.ts";
import type { ExecNode } from "./exec-node.ts";
import type { Way } from "./ways.ts";

/** The pace of exec streams. */
export interface Pace {
  /** The time over which each stream's bytes are written, in ms. 0: as fast as they can be. */
  readonly overMs: number;
  /** Streams begin all the time, evenly, rather than all at once together each time that the ones before have ended. */
  readonly isEven: boolean;
}

/** Exec streams, and requests beside them. */
export interface Streamed {
  /** P99 of requests, in ms. */
  readonly p99Ms: number;
  readonly streamsPerSecond: number;
}

const STREAMS = 2_000;
const STREAMS_AT_ONCE = 200;
const STREAM_BYTES = 1_000_000;
// Requests start at this interval, whether or not earlier ones have returned, so that slow ones hide none.
const INTERVAL_MS = 10;
const ALONE_MS = 10_000;

/** Returns the P99 latency of requests, in ms, while there are no streams. */
export async function p99Alone(way: Way, node: ExecNode): Promise<number> {
  const requests = startRequests(way, node.name);
  await sleep(ALONE_MS);
  return await requests.stop();
}

/**
 * Measures requests while one client in a process of its own has `STREAMS` exec streams the same way: from when `STREAMS_AT_ONCE`
 * have begun until the last has ended.
 */
export async function measureBesideStreams(
  way: Way,
  { node, member, pace }: { readonly node: ExecNode; readonly member: ClusterInfo; readonly pace: Pace },
): Promise<Streamed> {
  const { overMs, isEven } = pace;
  const settings: ExecClientSettings = {
    server: member.server,
    ca: member.caData,
    token: member.token,
    path: node.execPath(STREAM_BYTES, overMs),
    proxy: way.proxy,
    streams: STREAMS,
    atOnce: STREAMS_AT_ONCE,
    apartMs: isEven ? overMs / STREAMS_AT_ONCE : 0,
    bytes: STREAM_BYTES,
  };
  const client = fork(join(import.meta.dirname, "exec-client.ts"), [JSON.stringify(settings)]);
  // Node and client would have machines of their own.
  const undo = sharesImpossible() === undefined ? giveRest([node.pid, client.pid ?? 0]) : () => {};
  try {
    let requests: Requests | undefined;
    const { seconds, failures } = await new Promise<Extract<ExecClientMessage, { type: "ended" }>>(
      (resolve, reject) => {
        client.on("message", (message: ExecClientMessage) => {
          if (message.type === "begun") requests = startRequests(way, node.name);
          else resolve(message);
        });
        client.once("exit", (code) => reject(new Error(`the client of the streams exited with ${code}`)));
      },
    );
    const p99Ms = (await requests?.stop()) ?? Number.NaN;
    if (failures.length > 0) throw new Error(`${failures.length} of ${STREAMS} streams failed: ${failures[0]}`);
    return { p99Ms, streamsPerSecond: STREAMS / seconds };
  } finally {
    undo();
    client.kill();
  }
}

interface Requests {
  /** Resolves to the P99 latency in ms, once all have returned. A request that failed counts as one of infinite length. */
  stop(): Promise<number>;
}

function startRequests({ client }: Way, name: string): Requests {
  const latencies: number[] = [];
  const running = new Set<Promise<unknown>>();
  const timer = setInterval(() => {
    const begin = performance.now();
    const returned = client.get(nodes, { name }).then(
      () => latencies.push(performance.now() - begin),
      () => latencies.push(Number.POSITIVE_INFINITY),
    );
    const request = returned.finally(() => running.delete(request));
    running.add(request);
  }, INTERVAL_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await Promise.all(running);
      return quantile(latencies, 0.99);
    },
  };
}
