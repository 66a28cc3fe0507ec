import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { Registry } from "prom-client";
import { expect, onTestFinished, test, vi } from "vitest";
import { connectTo } from "../../../src/relay/connect.ts";
import type { RelayPod } from "../../../src/relay/endpoints.ts";
import { RelayServer } from "../../../src/relay/server.ts";
import { type Clock, realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { RelayMetrics } from "../../../src/telemetry/relay.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { freePort } from "../../support/clusters/ports.ts";

const route = { namespace: "team", service: "far-web", portName: "", members: new Set<string>() };
const noMembers = { forward: () => Promise.reject(new Error("no pod is in a member")) };

async function pod(
  name: string,
  onConnection: (socket: Socket) => void,
): Promise<RelayPod & { readonly server: Server; readonly taken: () => number }> {
  let taken = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    taken += 1;
    socket.on("error", () => {});
    onConnection(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const found = { uid: name, namespace: "team", name, address: "127.0.0.1", port, cluster: undefined };
  return { ...found, server, taken: () => taken };
}

interface Rig {
  readonly relay: RelayServer;
  readonly port: number;
  readonly series: (name: string) => Promise<readonly unknown[]>;
}

async function startRelay(pods: readonly RelayPod[], clock: Clock = realClock): Promise<Rig> {
  const registry = new Registry();
  const port = await freePort();
  const relay = new RelayServer({
    connect: (pod, _, signal) => connectTo(noMembers, pod, signal),
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

test("resets clients that wait for the first byte of a pod that has left and takes no connection, and no others", async () => {
  const clock = new FakeClock();
  const mute = await pod("mute", () => {});
  const { relay, port } = await startRelay([mute], clock);
  const waiting = await open(port);
  const reset = once(waiting, "error");
  const web = await pod("web", (socket) => void socket.pipe(socket));
  const { relay: other, port: otherPort } = await startRelay([web], clock);
  const answered = await open(otherPort);
  answered.write("a");
  await once(answered, "data");
  relay.recheck(["mute"]);
  await clock.advance(5_000);
  // The pod takes connections, though its Service selects it no more.
  await vi.waitUntil(() => mute.taken() === 2);
  expect(waiting.destroyed).toBe(false);
  for (const { server } of [mute, web]) server.close();
  relay.recheck(["mute"]);
  other.recheck(["web"]);
  await clock.advance(5_000);
  expect((await reset)[0]).toMatchObject({ code: "ECONNRESET" });
  answered.write("b");
  expect(String((await once(answered, "data"))[0])).toBe("b");
  answered.destroy();
});
