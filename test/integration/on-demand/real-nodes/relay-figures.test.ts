import { once } from "node:events";
import type { Socket } from "node:net";
import { beforeAll, expect, test } from "vitest";
import type { Pod } from "../../../../src/api/kubernetes.ts";
import { endpointSlices, pods, services } from "../../../../src/kube/resources.ts";
import { conditionOf } from "../../../../src/pods/pod-state.ts";
import { rssMb } from "../../../bench/process-usage.ts";
import { afterFile } from "../../../support/harness/after-file.ts";
import { podThat } from "../../../support/harness/pods-of.ts";
import { onRealNodes } from "../../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { installRelay, type RelayReplica, relayReplica } from "../../../support/legation/relay.ts";
import { StreamingKubectl } from "../../../support/streams/kubectl.ts";
import { ask, LARGE, open, WEB_PORTS, webPod } from "../../../support/streams/web-server.ts";

// Figures of docs/decisions/2026-11-30-relay.md.

const CONNECTIONS = 200;
const CONCURRENCY = 8;
const ROUNDS = 5;
const STREAMS = 500;
const REQUESTS = 400;
const PATIENT = { timeoutMs: 90_000 };
const LOOPBACK = "127.0.0.1";

/** Where a server of the member's pod is reached. */
interface Way {
  readonly host: string;
  readonly port: number;
}

async function connectionsPerSecond({ host, port }: Way): Promise<number> {
  const began = performance.now();
  let left = CONNECTIONS;
  const worker = async (): Promise<void> => {
    while (left-- > 0) expect((await ask(port, "/name", undefined, host)).status).toBe(200);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return CONNECTIONS / ((performance.now() - began) / 1000);
}

async function megabytesPerSecond({ host, port }: Way): Promise<number> {
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const socket = await open(port, host);
    const began = performance.now();
    socket.write("GET /large HTTP/1.0\r\n\r\n");
    let received = 0;
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.on("data", (chunk: Buffer) => {
        received += chunk.length;
        if (received > LARGE) resolve();
      });
    });
    rates.push(LARGE / 1e6 / ((performance.now() - began) / 1000));
    socket.destroy();
  }
  return rates.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
}

/** Milliseconds of the median and of the slowest hundredth of small requests, one after the other, each on its own connection. */
async function requestMs({ host, port }: Way): Promise<string> {
  const took: number[] = [];
  for (let index = 0; index < REQUESTS; index += 1) {
    const began = performance.now();
    expect((await ask(port, "/name", undefined, host)).status).toBe(200);
    took.push(performance.now() - began);
  }
  const sorted = took.toSorted((a, b) => a - b);
  return [0.5, 0.99].map((part) => sorted[Math.floor(part * REQUESTS)]?.toFixed(0)).join(" / ");
}

/** Opens streams, each of which sends a line a second and gets it back. */
async function openStreams(port: number): Promise<Disposable> {
  const held: Socket[] = [];
  for (let index = 0; index < STREAMS; index += 1) {
    const socket = await open(port);
    socket.write("x\n");
    await once(socket, "data");
    socket.resume();
    held.push(socket);
  }
  let turn = 0;
  const lines = setInterval(() => held[turn++ % STREAMS]?.write("a line\n"), 1_000 / STREAMS);
  return {
    [Symbol.dispose]: () => {
      clearInterval(lines);
      for (const socket of held) socket.destroy();
    },
  };
}

onRealNodes((realNodes) => {
  let relay: RelayReplica;
  const ports = new Map<string, number>();
  let forward: StreamingKubectl;
  let podIP: string;

  beforeAll(async () => {
    const { legation } = realNodes();
    await installRelay(legation.host, ["192.0.2.1"]);
    const { client, namespace, cluster } = (await realNodes().places({ onFinished: afterFile })).delegating;
    const annotations = { "legation.dev/relay": "web" };
    const selector = { app: "web" };
    await client.create(services, { metadata: { name: "web", namespace }, spec: { selector, ports: [...WEB_PORTS] } });
    const spec = { ports: WEB_PORTS.map(({ name, port }) => ({ name, port })) };
    await client.create(services, { metadata: { name: "far-web", namespace, annotations }, spec });
    await client.create(pods, webPod(namespace, "web-0"));
    const isReady = (pod: Pod): boolean => conditionOf(pod, "Ready")?.status === "True";
    podIP = (await podThat(client, namespace, "web-0", isReady, PATIENT)).status?.podIP ?? "";
    relay = await relayReplica(legation, LOOPBACK);
    await relay.process.start();
    const slice = await eventually(
      () => client.find(endpointSlices, { namespace, name: "far-web-relay-ipv4" }),
      PATIENT,
    );
    for (const { name = "", port = 0 } of slice.ports ?? []) ports.set(name, port);
    await eventuallyPasses(async () => expect((await ask(ports.get("http") ?? 0, "/name")).status).toBe(200), PATIENT);
    forward = new StreamingKubectl(["-n", namespace, "port-forward", "pod/web-0", ":8080"], {
      kubeconfig: cluster.kubeconfig,
      transport: "SPDY",
      timeoutMs: 600_000,
    });
    afterFile(async () => forward[Symbol.dispose]());
  }, 300_000);

  test("measures the relay beside kubectl port-forward and a connection to the pod", async () => {
    const [, forwarded] = await forward.says(/127\.0\.0\.1:(\d+)/);
    const relayed = { host: LOOPBACK, port: ports.get("http") ?? 0 };
    const ways = [relayed, { host: LOOPBACK, port: Number(forwarded) }, { host: podIP, port: 8080 }];
    const memory = (): number => rssMb(relay.process.pid ?? 0);
    const rows: (string | number)[][] = [];
    for (const [name, measure] of [
      ["connections/s", connectionsPerSecond],
      ["MB/s on one stream", megabytesPerSecond],
      ["ms of a request, P50 / P99", requestMs],
    ] as const) {
      const row: (string | number)[] = [name];
      for (const way of ways) row.push(await measure(way));
      rows.push(row);
    }
    const before = memory();
    {
      using _ = await openStreams(ports.get("echo") ?? 0);
      rows.push(["kB of a connection", ((memory() - before) * 1000) / STREAMS]);
      rows.push([`the same beside ${STREAMS} streams of the relay`, await requestMs(relayed)]);
    }
    for (const row of rows)
      process.stderr.write(`${row.map((cell) => (typeof cell === "number" ? cell.toFixed(1) : cell)).join(" | ")}\n`);
  });
});
