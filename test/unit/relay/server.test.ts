import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { Duplex, PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { Registry } from "prom-client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { PortForward, PortForwards } from "../../../src/kube/port-forward.ts";
import { connectTo } from "../../../src/relay/connect.ts";
import type { RelayPod } from "../../../src/relay/endpoints.ts";
import { RelayServer } from "../../../src/relay/server.ts";
import { type Clock, realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { RelayMetrics } from "../../../src/telemetry/relay.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { freePort } from "../../support/clusters/ports.ts";

const route = { namespace: "team", service: "far-web", portName: "", members: new Set<string>() };
const noMembers = { forward: () => Promise.reject(new Error("no pod is in a member")) };

async function pod(
  name: string,
  onConnection: (socket: Socket) => void,
): Promise<RelayPod & { readonly server: Server }> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    onConnection(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const found = { uid: name, namespace: "team", name, address: "127.0.0.1", port, cluster: undefined };
  return { ...found, server };
}

interface Rig {
  readonly relay: RelayServer;
  readonly port: number;
  readonly series: (name: string) => Promise<readonly unknown[]>;
}

async function startRelay(
  pods: readonly RelayPod[],
  clock: Clock = realClock,
  forwards: Pick<PortForwards, "forward"> = noMembers,
): Promise<Rig> {
  const registry = new Registry();
  const port = await freePort();
  const relay = new RelayServer({
    connect: (pod, _, signal) => connectTo(forwards, pod, signal),
    routes: { ports: new Map([[port, route]]), destinationOf: () => ({ pods, affinityMs: 60_000 }) },
    address: "127.0.0.1",
    onConnection: () => {},
    clock,
    log: createLogger({ level: "silent" }),
    metrics: new RelayMetrics(registry),
  });
  relay.follow();
  await vi.waitUntil(() => relay.isListening);
  onTestFinished(() => relay.close(0));
  const series = async (name: string): Promise<readonly unknown[]> =>
    (await registry.getSingleMetric(`legation_relay_${name}`)?.get())?.values.map(({ labels, value }) => ({
      ...labels,
      value,
    })) ?? [];
  return { relay, port, series };
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  await once(socket, "connect");
  return socket;
}

test("carries bytes and the end of each direction apart from the other", async () => {
  const web = await pod("web", (socket) => {
    void text(socket).then((asked) => socket.end(`answer to ${asked}`));
  });
  const { port, series } = await startRelay([web]);
  const client = await open(port);
  client.end("a question");
  expect(await text(client)).toBe("answer to a question");
  await vi.waitUntil(async () =>
    (await series("open_connections")).every((one) => (one as { value: number }).value === 0),
  );
  expect(await series("bytes_total")).toEqual([
    { cluster: "", direction: "request", value: 10 },
    { cluster: "", direction: "response", value: 20 },
  ]);
  expect(await series("failures_total")).toEqual([]);
});

test("carries a reset to the other side, whoever made it", async () => {
  const taken: Socket[] = [];
  const web = await pod("web", (socket) => void taken.push(socket));
  const { port, series } = await startRelay([web]);
  const first = await open(port);
  await vi.waitUntil(() => taken.length === 1);
  taken[0]?.resetAndDestroy();
  expect((await once(first, "error"))[0]).toMatchObject({ code: "ECONNRESET" });
  const second = await open(port);
  await vi.waitUntil(() => taken.length === 2);
  second.resetAndDestroy();
  await vi.waitUntil(() => taken[1]?.errored);
  expect(taken[1]?.errored).toMatchObject({ code: "ECONNRESET" });
  await vi.waitUntil(async () => (await series("failures_total")).length > 0);
  expect(await series("failures_total")).toEqual([{ cluster: "", reason: "Cut", value: 2 }]);
});

test("tries another pod where one refuses, and resets a client where none is there", async () => {
  const closed = await pod("closed", () => {});
  closed.server.close();
  const web = await pod("web", (socket) => void socket.end("hello"));
  for (const pods of [
    [closed, web],
    [web, closed],
  ]) {
    const { port } = await startRelay(pods);
    expect(await text(await open(port))).toBe("hello");
  }
  const { port, series } = await startRelay([]);
  const client = connect(port, "127.0.0.1");
  // Linux may tell the reset before the connection.
  expect(await new Promise((resolve) => client.once("error", resolve))).toMatchObject({ code: "ECONNRESET" });
  expect(await series("failures_total")).toEqual([{ cluster: "", reason: "NoEndpoints", value: 1 }]);
});

test("lets open connections go on while it drains, and cuts what is left", async () => {
  const web = await pod("web", (socket) => void socket.pipe(socket));
  const { relay, port } = await startRelay([web]);
  const client = await open(port);
  client.write("a");
  await once(client, "data");
  const closing = relay.close(500);
  client.write("b");
  expect(String((await once(client, "data"))[0])).toBe("b");
  await expect(open(port)).rejects.toThrow("ECONNREFUSED");
  const cut = once(client, "error");
  await closing;
  expect((await cut)[0]).toMatchObject({ code: "ECONNRESET" });
});

describe("a client that waits for the first byte of a pod that has left its Service", () => {
  const inWest = { uid: "web", namespace: "team", name: "web", address: "10.0.0.1", port: 80, cluster: "west" };
  const mute = (): Duplex => new Duplex({ read: () => {}, write: (_chunk, _encoding, written) => written() });

  /** Returns the client of a pod, which is asked for a connection again five seconds after it has left. */
  async function recheck(stream: Duplex, again: (signal: AbortSignal) => Promise<PortForward>): Promise<Socket> {
    const clock = new FakeClock();
    let asked = 0;
    const forward: PortForwards["forward"] = async (_pod, _port, { signal }) => {
      asked += 1;
      return asked === 1 ? { stream } : again(signal);
    };
    const { relay, port } = await startRelay([inWest], clock, { forward });
    const client = await open(port);
    onTestFinished(() => {
      client.resetAndDestroy();
      stream.destroy();
    });
    client.on("error", () => {});
    client.write("a");
    const isMute = !(stream instanceof PassThrough);
    await (isMute ? vi.waitUntil(() => asked === 1) : once(client, "data"));
    relay.recheck(["web"]);
    await clock.advance(5_000);
    if (isMute) await vi.waitUntil(() => asked === 2);
    return client;
  }

  test.each([404, 400])("is reset where the answer is %i: the pod is gone, or has ended", async (status) => {
    const client = await recheck(mute(), async () => ({ status, text: 'pod "web" is not available' }));
    await vi.waitUntil(() => client.errored);
    expect(client.errored).toMatchObject({ code: "ECONNRESET" });
  });

  test.each<[string, () => Promise<PortForward>]>([
    ["takes connections, though its Service selects it no more", async () => ({ stream: mute() })],
    ["has a member whose API server fails", async () => ({ status: 500, text: "etcdserver: request timed out" })],
    ["has a member that does not answer", () => Promise.reject(kubeError("AnswerLost", "no answer within 20000 ms"))],
  ])("waits on while the pod %s", async (_, again) => {
    const stream = mute();
    const client = await recheck(stream, again);
    client.end("b");
    await once(stream, "finish");
  });

  test("is left alone once the pod has answered", async () => {
    const client = await recheck(new PassThrough(), async () => ({ status: 404, text: "" }));
    client.write("b");
    expect(String((await once(client, "data"))[0])).toBe("b");
  });

  test("ends the request to the pod when it leaves", async () => {
    let asked: AbortSignal | undefined;
    const client = await recheck(mute(), (signal) => {
      asked = signal;
      return new Promise(() => {});
    });
    client.resetAndDestroy();
    await vi.waitUntil(() => asked?.aborted === true);
  });
});
