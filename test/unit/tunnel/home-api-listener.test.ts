import { once } from "node:events";
import { createServer, type Server } from "node:https";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { issueAuthority, issueServing } from "../../../src/certificates/issue.ts";
import type { UpgradeAnswer } from "../../../src/kube/client.ts";
import type { DialTarget } from "../../../src/tunnel/dialled.ts";
import type { Hub } from "../../../src/tunnel/hub.ts";
import { HOME_PATH, HOME_PROTOCOL, upgradeTo } from "../../../src/tunnel/messages.ts";
import type { FakeClock } from "../../support/clock/fake-clock.ts";
import { readAll } from "../../support/streams/socket-pair.ts";
import { type AgentRig, hubClient, identityOf, runAgent, startHub, startMember } from "../../support/tunnel/rig.ts";

const west = { cluster: "west", uid: "1" };
const never = new AbortController().signal;
const MIB = 2 ** 20;
const validity = { now: Date.now(), lifetimeMs: 3_600_000 };
const homeAuthority = issueAuthority("home", validity);
const homeServing = homeAuthority.then((authority) => issueServing(authority, ["kubernetes.default.svc"], validity));

function portOf(server: Pick<Server, "address">): number {
  return (server.address() as AddressInfo).port;
}

/** A TCP server in the place of the host's API server. */
async function tcpServer(
  onConnection: (socket: Socket) => void,
): Promise<DialTarget & { readonly sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { host: "127.0.0.1", port: portOf(server), sockets };
}

interface Way {
  readonly hub: Hub;
  readonly refusals: Map<string, string>;
  /** Why pods may not use the agent. */
  readonly homeRefusals: Map<string, string>;
  readonly rig: AgentRig;
  /** Port at which pods connect. */
  readonly port: number;
  readonly told: string[];
}

/** Starts a hub and an agent that leads pods to the home API. */
async function startWay(homeApi?: DialTarget, clock?: FakeClock): Promise<Way> {
  const homeRefusals = new Map<string, string>();
  const told: string[] = [];
  const { hub, url, refusals } = await startHub({
    ...(homeApi === undefined ? {} : { homeApi }),
    gatekeeper: { homeApiRefusal: (name) => homeRefusals.get(name), onFacts: (name) => told.push(name) },
  });
  const { target } = await startMember();
  const options = { homeAddress: "10.96.7.7", ...(clock === undefined ? {} : { clock }) };
  const rig = runAgent(url, await identityOf(west), target, options);
  const port = await rig.listener.listen("127.0.0.1", 0);
  await vi.waitFor(() => expect(hub.agent("west")?.homeAddress).toBe("10.96.7.7"), { timeout: 10_000 });
  return { hub, refusals, homeRefusals, rig, port, told };
}

function podOn(port: number): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  return socket;
}

async function closed(socket: Socket): Promise<void> {
  socket.resume();
  if (!socket.closed) await once(socket, "close");
}

describe("the way of a member's pods to the home API", () => {
  test("is end to end: a pod verifies the host's API server, by the name that every API server has", async () => {
    const server = createServer(await homeServing, (request, response) => response.end(`home ${request.url}`));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.close();
    });
    const { hub, port, told } = await startWay({ host: "127.0.0.1", port: portOf(server) });
    const { cert: ca } = await homeAuthority;
    const pod: TLSSocket = connectTls({ port, host: "127.0.0.1", servername: "kubernetes.default.svc", ca });
    await once(pod, "secureConnect");
    pod.write("GET /version HTTP/1.1\r\nHost: kubernetes.default.svc\r\nConnection: close\r\n\r\n");
    expect((await readAll(pod)).toString()).toContain("home /version");
    await vi.waitFor(() => expect(hub.state("west").homeStreams).toBe(0));
    const { homeReceivedBytes, homeSentBytes, streams } = hub.state("west");
    expect(homeReceivedBytes).toBeGreaterThan(100);
    expect(homeSentBytes).toBeGreaterThan(100);
    expect(streams).toBe(0);
    expect(hub.agent("west")).toMatchObject({ version: "1.2.3" });
    expect(told).toEqual(["west", "west"]);
  });

  test("passes large answers whole, also while a pod stalls, whose memory stays bounded", {
    timeout: 60_000,
  }, async () => {
    let poured = 0;
    const chunk = Buffer.alloc(65_536);
    const sent = Buffer.alloc(3 * MIB, "x");
    const home = await tcpServer((socket) => {
      socket.once("data", (first: Buffer) => {
        if (first.toString() === "whole") socket.end(sent);
        else {
          const pour = (): void => {
            while (!socket.destroyed && socket.write(chunk)) poured += chunk.length;
          };
          socket.on("drain", pour);
          pour();
        }
      });
    });
    const { port } = await startWay(home);
    const stalled = podOn(port);
    stalled.pause();
    stalled.write("endless");
    await vi.waitFor(async () => {
      const before = poured;
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(before).toBeGreaterThan(0);
      expect(poured).toBe(before);
    }, 20_000);
    // Kernels keep a few MiB for each of three connections.
    expect(poured).toBeLessThan(60 * MIB);
    const pod = podOn(port);
    pod.write("whole");
    expect(await readAll(pod)).toHaveLength(sent.length);
  });

  test("is closed to a Cluster that is not to have it, and its pods are cut at once when it loses it", async () => {
    const home = await tcpServer((socket) => socket.resume());
    const { hub, port, homeRefusals } = await startWay(home);
    const pod = podOn(port);
    await vi.waitFor(() => expect(home.sockets.size).toBe(1));
    homeRefusals.set("west", "pods of Cluster west do not reach the host's API server through its agent");
    hub.recheck("west");
    await closed(pod);
    await closed(podOn(port));
    expect(home.sockets.size).toBe(0);
    expect(hub.state("west").connected).toBe(true);
  });

  test("ends with the agent's control connection, as when its Cluster is deleted", async () => {
    const home = await tcpServer((socket) => socket.resume());
    const { hub, port, refusals } = await startWay(home);
    const pod = podOn(port);
    await vi.waitFor(() => expect(home.sockets.size).toBe(1));
    refusals.set("west", "Cluster west has not joined");
    hub.recheck("west");
    await closed(pod);
    await vi.waitFor(() => expect(home.sockets.size).toBe(0));
    // Without a control connection pods are turned away at once.
    await closed(podOn(port));
  });

  test("says in the agent's log that the host's API server cannot be reached", async () => {
    const { port, sockets: _, ...home } = await tcpServer(() => {});
    const unreachable = { ...home, port: port + 1 };
    const way = await startWay(unreachable);
    await closed(podOn(way.port));
    expect(way.rig.logged.join("")).toContain("the host's API server cannot be reached: connect ECONNREFUSED");
  });

  test("is closed where the controller itself needs a proxy", async () => {
    const { port, rig } = await startWay();
    await closed(podOn(port));
    expect(rig.logged.join("")).toContain("the controller reaches its API server by a proxy");
  });

  test("takes at most 500 connections of one member, whatever its agent sends, and goes on once one has ended", async () => {
    const home = await tcpServer((socket) => socket.resume());
    const { hub, url } = await startHub({ homeApi: home });
    const identity = await identityOf(west);
    const { target } = await startMember();
    runAgent(url, identity, target);
    await vi.waitFor(() => expect(hub.state("west").connected).toBe(true), { timeout: 10_000 });
    const client = hubClient(url, identity);
    const ask = (): Promise<UpgradeAnswer> => client.upgradePath(HOME_PATH, upgradeTo(HOME_PROTOCOL, 30_000));
    const open: UpgradeAnswer[] = [];
    for (let batch = 0; batch < 10; batch += 1) open.push(...(await Promise.all(Array.from({ length: 50 }, ask))));
    expect(hub.state("west").homeStreams).toBe(500);
    const refused = await ask();
    expect(refused.socket).toBeUndefined();
    expect(refused).toMatchObject({ status: 503, text: expect.stringContaining("at most 500 of one member") });
    open[0]?.socket?.destroy();
    await vi.waitFor(() => expect(hub.state("west").homeStreams).toBe(499));
    expect((await ask()).socket).toBeDefined();
  }, 60_000);

  test("takes at most 200 connections of one address, and leaves the delegation's own streams alone", async () => {
    const home = await tcpServer((socket) => socket.pipe(socket));
    const { hub, port } = await startWay(home);
    const pods = Array.from({ length: 201 }, () => podOn(port));
    await Promise.race(pods.map(closed));
    await vi.waitFor(() => expect(hub.state("west").homeStreams).toBe(200), { timeout: 20_000 });
    expect(pods.filter((pod) => pod.closed)).toHaveLength(1);
    const stream = await hub.dial("west", never);
    expect(hub.state("west").streams).toBe(1);
    stream.destroy();
    for (const pod of pods) pod.destroy();
    await vi.waitFor(() => expect(hub.state("west").homeStreams).toBe(0), { timeout: 10_000 });
    const next = podOn(port);
    next.write("ping");
    const [bytes] = (await once(next, "data")) as [Buffer];
    expect(bytes.toString()).toBe("ping");
  });
});
