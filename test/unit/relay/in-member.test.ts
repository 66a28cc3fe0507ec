import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { Registry } from "prom-client";
import { expect, onTestFinished, test, vi } from "vitest";
import { MEMBER_RELAY_PORTS } from "../../../src/api/relay.ts";
import { type Connected, connectTo } from "../../../src/relay/connect.ts";
import type { RelayPod } from "../../../src/relay/endpoints.ts";
import { HostRelays } from "../../../src/relay/in-member.ts";
import { MemberRelay } from "../../../src/relay/member-relay.ts";
import type { Route } from "../../../src/relay/routes.ts";
import { RelayServer } from "../../../src/relay/server.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { RelayMetrics } from "../../../src/telemetry/relay.ts";
import { freePort } from "../../support/clusters/ports.ts";

const log = createLogger({ level: "silent" });
const noMembers = { forward: () => Promise.reject(new Error("no pod is in a member")) };
const relayPod = { uid: "relay", namespace: "legation-relay-members", name: "west-0", address: "10.1.0.1", port: 0 };
const signal = new AbortController().signal;

interface Rig {
  /** The port of a client's Service in the member. */
  readonly port: number;
  readonly inMember: HostRelays;
  readonly member: MemberRelay;
  readonly routes: Map<number, Route>;
  /** The connections to the relay in the member, the control connection first. */
  readonly connections: Duplex[];
  /** Connects a relay of the host once more. */
  readonly connectHost: () => MemberRelay;
}

/** A relay in a member, and one of the host that reaches it by TCP in place of a port-forward. */
async function start(onConnection: (socket: Socket) => void): Promise<Rig> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    onConnection(socket);
  });
  const [port, control, streams] = [await freePort(), await freePort(), await freePort()];
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port: podPort } = server.address() as { readonly port: number };
  const pod: RelayPod = {
    uid: "db",
    namespace: "team",
    name: "db",
    address: "127.0.0.1",
    port: podPort,
    cluster: undefined,
  };
  const routes = new Map<number, Route>([
    [port, { namespace: "team", service: "far-db", portName: "", members: new Set(["west"]) }],
    [port + 1, { namespace: "other", service: "far-db", portName: "", members: new Set(["east"]) }],
  ]);

  const inMember = new HostRelays({ onPorts: () => memberServer.follow(), clock: realClock, log });
  const shared = { address: "127.0.0.1", onConnection: () => {}, clock: realClock, log };
  const memberServer = new RelayServer({
    ...shared,
    routes: inMember,
    connect: (one, client, ending) => inMember.connect(one, client, ending),
    metrics: new RelayMetrics(new Registry()),
  });
  await inMember.listen({ control, streams });
  onTestFinished(async () => {
    await inMember.close();
    await memberServer.close(0);
  });

  const ports: Record<number, number> = {
    [MEMBER_RELAY_PORTS.control]: control,
    [MEMBER_RELAY_PORTS.streams]: streams,
  };
  const connections: Duplex[] = [];
  const forward = async (one: RelayPod, ending: AbortSignal): Promise<Connected> => {
    const local = { ...one, cluster: undefined, address: "127.0.0.1", port: ports[one.port] ?? 0 };
    const connected = await connectTo(noMembers, local, ending);
    if (connected.stream !== undefined) connections.push(connected.stream);
    return connected;
  };
  const hostServer = new RelayServer({
    ...shared,
    routes: { ports: routes, destinationOf: () => ({ pods: [pod], affinityMs: undefined }) },
    connect: (one, _, ending) => connectTo(noMembers, one, ending),
    metrics: new RelayMetrics(new Registry()),
  });
  const connectHost = (): MemberRelay => {
    const options = { connect: forward, routes: { ports: routes }, server: hostServer, clock: realClock, log };
    const relay = new MemberRelay({ ...relayPod, cluster: "west" }, options);
    onTestFinished(() => relay.stop());
    return relay;
  };
  onTestFinished(() => hostServer.close(0));
  const member = connectHost();
  await vi.waitUntil(() => memberServer.isListening && inMember.ports.size > 0);
  return { port, inMember, member, routes, connections, connectHost };
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

const answer = (socket: Socket): void => void text(socket).then((asked) => socket.end(`answer to ${asked}`));

test("carries a member's connection to a pod, with the end of each direction", async () => {
  const { port } = await start(answer);
  const client = await open(port);
  client.end("a question");
  expect(await text(client)).toBe("answer to a question");
});

test("carries a large body without a change", async () => {
  const large = Buffer.alloc(16 * 2 ** 20, "0123456789");
  const { port } = await start((socket) => socket.end(large));
  expect((await buffer(await open(port))).equals(large)).toBe(true);
});

test.each(["pod", "client"])("carries a reset by the %s", async (by) => {
  const arrived = Promise.withResolvers<Socket>();
  const { port } = await start(arrived.resolve);
  const client = await open(port);
  client.write("half of a question");
  const pod = await arrived.promise;
  await once(pod, "data");
  const [from, to] = by === "pod" ? [pod, client] : [client, pod];
  from.resetAndDestroy();
  const [error] = await once(to, "error");
  expect(error).toMatchObject({ code: "ECONNRESET" });
});

test("listens on the ports of Services that its own pods may use, alone", async () => {
  const { inMember, port, routes, member } = await start(answer);
  expect([...inMember.ports.keys()]).toEqual([port]);
  routes.clear();
  member.tellPorts();
  await vi.waitUntil(() => inMember.ports.size === 0);
});

test("is refused a Service that is not relayed to its member, whatever it asks for", async () => {
  const { inMember, port } = await start(answer);
  const [{ uid } = { uid: "" }] = inMember.destinationOf([...inMember.ports.values()][0] as Route).pods;
  const asked = (wanted: number): Promise<Connected> =>
    inMember.connect({ ...relayPod, uid, port: wanted, cluster: undefined }, "10.1.0.9", signal);
  for (const other of [port + 1, port + 2]) {
    expect(await asked(other)).toEqual({ reason: "Unreachable", message: "the Service is not relayed to this member" });
  }
});

test("lets open connections go on when the host's relay leaves", async () => {
  const { port, inMember, member } = await start((socket) => socket.pipe(socket));
  const client = await open(port);
  client.write("before");
  expect(String(await once(client, "data"))).toBe("before");
  member.stop();
  await vi.waitUntil(() => !inMember.areConnected);
  client.write("after");
  expect(String(await once(client, "data"))).toBe("after");
});

test("cuts open connections when the way to the host's relay is gone", async () => {
  const { port, connections } = await start((socket) => socket.pipe(socket));
  const client = await open(port);
  client.write("before");
  await once(client, "data");
  connections[0]?.destroy();
  const [error] = await once(client, "error");
  expect(error).toMatchObject({ code: "ECONNRESET" });
});

test("takes another relay of the host when one has left", async () => {
  const { port, inMember, member, connectHost } = await start(answer);
  connectHost();
  const [route] = inMember.ports.values();
  await vi.waitUntil(() => inMember.destinationOf(route as Route).pods.length === 2);
  member.stop();
  const client = await open(port);
  client.end("a question");
  expect(await text(client)).toBe("answer to a question");
});

test("listens nowhere while no relay of the host is connected", async () => {
  const { port, inMember, member } = await start(answer);
  member.stop();
  await vi.waitUntil(() => !inMember.areConnected);
  await expect(open(port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
