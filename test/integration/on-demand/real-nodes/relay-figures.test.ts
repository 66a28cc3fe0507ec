import { once } from "node:events";
import type { Socket } from "node:net";
import { beforeAll, expect, test } from "vitest";
import type { Pod } from "../../../../src/api/kubernetes.ts";
import { endpointSlices, nodes, pods, services } from "../../../../src/kube/resources.ts";
import { conditionOf } from "../../../../src/pods/pod-state.ts";
import { cpuMs, differenceOf, rssMb, usageOf } from "../../../bench/process-usage.ts";
import { afterFile } from "../../../support/harness/after-file.ts";
import { podThat } from "../../../support/harness/pods-of.ts";
import { onRealNodes, type Place } from "../../../support/harness/real-nodes.ts";
import { eventually, eventuallyPasses } from "../../../support/harness/wait.ts";
import { installRelay, type RelayReplica, relayReplica, runMemberRelay } from "../../../support/legation/relay.ts";
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
async function openStreams({ host, port }: Way): Promise<Disposable> {
  const held: Socket[] = [];
  for (let index = 0; index < STREAMS; index += 1) {
    const socket = await open(port, host);
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

type Row = readonly (string | number)[];

async function compare(ways: readonly Way[]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [name, measure] of [
    ["connections/s", connectionsPerSecond],
    ["MB/s on one stream", megabytesPerSecond],
    ["ms of a request, P50 / P99", requestMs],
  ] as const) {
    const row: (string | number)[] = [name];
    for (const way of ways) row.push(await measure(way));
    rows.push(row);
  }
  return rows;
}

function print(rows: readonly Row[]): void {
  for (const row of rows)
    process.stderr.write(`${row.map((cell) => (typeof cell === "number" ? cell.toFixed(1) : cell)).join(" | ")}\n`);
}

onRealNodes((realNodes) => {
  let relay: RelayReplica;
  let place: Place;
  let plain: Place;
  let forward: StreamingKubectl;
  let podIP: string;

  /** Makes a Service of pods with its label, and one that is relayed to it. Resolves to the relay's ports, by name. */
  async function relayed(name: string): Promise<ReadonlyMap<string, number>> {
    const { client, namespace } = place;
    const own = { selector: { app: name }, ports: [...WEB_PORTS], publishNotReadyAddresses: true };
    await client.create(services, { metadata: { name, namespace }, spec: own });
    const far = { name: `far-${name}`, namespace, annotations: { "legation.dev/relay": name } };
    const spec = { ports: WEB_PORTS.map((one) => ({ name: one.name, port: one.port })) };
    await client.create(services, { metadata: far, spec });
    const slice = { namespace, name: `far-${name}-relay-ipv4` };
    const found = await eventually(() => client.find(endpointSlices, slice), PATIENT);
    return new Map(found.ports?.map(({ name: port = "", port: number = 0 }) => [port, number]));
  }

  /** Runs the web server's pod. Resolves to its address. */
  async function run({ client, namespace }: Place): Promise<string> {
    await client.create(pods, webPod(namespace, "web-0"));
    const isReady = (pod: Pod): boolean => conditionOf(pod, "Ready")?.status === "True";
    return (await podThat(client, namespace, "web-0", isReady, PATIENT)).status?.podIP ?? "";
  }

  /** Milliseconds of processor time that 100 MB on one stream take, by process. */
  async function processorTime(way: Way): Promise<Row[]> {
    const { legation, inMember } = realNodes();
    const usage = usageOf({ host: legation.host, members: [inMember(place).cluster], legation });
    const all = (): Record<string, number> => ({ ...usage(), "the host's relay": cpuMs(relay.process.pid ?? 0) });
    const before = all();
    await megabytesPerSecond(way);
    return Object.entries(differenceOf(all(), before)).map(([name, ms]) => [name, ms / ((ROUNDS * LARGE) / 1e8)]);
  }

  async function answers({ host, port }: Way): Promise<void> {
    await eventuallyPasses(async () => expect((await ask(port, "/name", undefined, host)).status).toBe(200), PATIENT);
  }

  beforeAll(async () => {
    const { legation } = realNodes();
    await installRelay(legation.host, ["192.0.2.1"]);
    ({ delegating: place, plain } = await realNodes().places({ onFinished: afterFile }));
    podIP = await run(place);
    relay = await relayReplica(legation, LOOPBACK);
    await relay.process.start();
    forward = new StreamingKubectl(["-n", place.namespace, "port-forward", "pod/web-0", ":8080"], {
      kubeconfig: place.cluster.kubeconfig,
      transport: "SPDY",
      timeoutMs: 600_000,
    });
    afterFile(async () => forward[Symbol.dispose]());
  }, 300_000);

  test("measures the relay beside kubectl port-forward and a connection to the pod", async () => {
    const ports = await relayed("web");
    const [, forwarded] = await forward.says(/127\.0\.0\.1:(\d+)/);
    const way = { host: LOOPBACK, port: ports.get("http") ?? 0 };
    await answers(way);
    const rows = await compare([way, { host: LOOPBACK, port: Number(forwarded) }, { host: podIP, port: 8080 }]);
    rows.push(...(await processorTime(way)));
    const memory = (): number => rssMb(relay.process.pid ?? 0);
    const before = memory();
    {
      using _ = await openStreams({ host: LOOPBACK, port: ports.get("echo") ?? 0 });
      rows.push(["kB of a connection", ((memory() - before) * 1000) / STREAMS]);
      rows.push([`the same beside ${STREAMS} streams of the relay`, await requestMs(way)]);
    }
    print(rows);
  });

  test("measures the relay from a member to the host beside a connection to the pod", async () => {
    const { legation, inMember } = realNodes();
    const ownIP = await run(plain);
    // A pod of the host whose address is that of the plain cluster's: the host runs nothing.
    await place.client.create(nodes, { metadata: { name: "silent" } });
    afterFile(() => place.client.delete(nodes, { name: "silent" }));
    const { metadata, spec } = webPod(place.namespace, "own");
    const annotations = { "legation.dev/delegate": "false" };
    const own = { ...metadata, labels: { app: "own" }, annotations };
    await place.client.create(pods, { metadata: own, spec: { containers: [], ...spec, nodeName: "silent" } });
    const body = { status: { podIP: ownIP, podIPs: [{ ip: ownIP }] } };
    const ref = { namespace: place.namespace, name: "own" };
    await place.client.patch(pods, ref, { type: "merge", body }, { subresource: "status" });
    const ports = await relayed("own");
    await runMemberRelay(legation.host, inMember(place).cluster);
    const { items } = await place.client.list(pods, { namespace: "legation-relay-members" });
    const host = items[0]?.status?.podIP ?? "";
    const way = { host, port: ports.get("http") ?? 0 };
    await answers(way);
    const rows = await compare([way, { host: ownIP, port: 8080 }]);
    rows.push(...(await processorTime(way)));
    {
      using _ = await openStreams({ host, port: ports.get("echo") ?? 0 });
      rows.push([`the same beside ${STREAMS} streams of the relay`, await requestMs(way)]);
    }
    print(rows);
  });
});
