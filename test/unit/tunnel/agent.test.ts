import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { duplexPair } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { issueAuthority } from "../../../src/certificates/issue.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { Agent } from "../../../src/tunnel/agent.ts";
import type { DialTarget } from "../../../src/tunnel/dialled.ts";
import type { Hub } from "../../../src/tunnel/hub.ts";
import { CONTROL_PATH } from "../../../src/tunnel/messages.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { readAll } from "../../support/streams/socket-pair.ts";
import { connectProxy } from "../../support/tunnel/connect-proxy.ts";
import { hubAuthority, identityOf, memberClient, runAgent, startHub, startMember } from "../../support/tunnel/rig.ts";

const west = { cluster: "west", uid: "1" };
const never = new AbortController().signal;
const MIB = 2 ** 20;

/** A TCP server in the place of the member's API server. */
async function tcpServer(onConnection: (socket: Socket) => void): Promise<DialTarget & { readonly server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { host: "127.0.0.1", port: typeof address === "object" && address !== null ? address.port : 0, server };
}

async function connected(hub: Hub, cluster = "west"): Promise<void> {
  await vi.waitFor(() => expect(hub.state(cluster).connected).toBe(true), { timeout: 10_000 });
}

describe("an agent", () => {
  test("tells the hub that its API server cannot be reached", async () => {
    const { hub, url } = await startHub();
    const { port, server } = await tcpServer(() => {});
    server.close();
    runAgent(url, await identityOf(west), { host: "127.0.0.1", port });
    await connected(hub);
    await expect(hub.dial("west", never)).rejects.toThrow(
      `the agent of west cannot connect: connect ECONNREFUSED 127.0.0.1:${port}`,
    );
  });

  test("spreads a burst of connections", async () => {
    const { hub, url } = await startHub();
    const clock = new FakeClock();
    const openedAt: number[] = [];
    const target = await tcpServer(() => openedAt.push(clock.now()));
    runAgent(url, await identityOf(west), target, { clock });
    await connected(hub);
    const begin = clock.now();
    const dialled = Promise.all(Array.from({ length: 4 }, () => hub.dial("west", never)));
    for (const opened of [1, 2, 3]) {
      await vi.waitFor(() => expect(openedAt.length).toBeGreaterThanOrEqual(opened), { timeout: 10_000 });
      await clock.advance(4);
    }
    for (const socket of await dialled) socket.destroy();
    expect(openedAt.map((at) => at - begin)).toEqual([0, 4, 8, 12]);
  });

  test("does not leave a connection open whose API server cuts it at once", async () => {
    const { hub, url } = await startHub();
    const target = await tcpServer((socket) => socket.resetAndDestroy());
    runAgent(url, await identityOf(west), target);
    await connected(hub);
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const dialled = await hub.dial("west", AbortSignal.timeout(10_000)).catch(() => undefined);
      if (dialled !== undefined && !dialled.closed) await once(dialled.resume(), "close");
    }
    expect(hub.state("west").streams).toBe(0);
  });

  test("logs why the hub refuses it, and tries again", async () => {
    const { hub, url, refusals } = await startHub();
    refusals.set("west", "Cluster west has not joined");
    const clock = new FakeClock();
    const { target } = await startMember();
    const { logged } = runAgent(url, await identityOf(west), target, { clock });
    await vi.waitFor(() =>
      expect(logged.join("")).toContain("the hub refuses this agent: Cluster west has not joined"),
    );
    refusals.clear();
    await clock.fireNext();
    await connected(hub);
  });

  test("asks a hub that refuses it ever less often, up to five minutes, and says what to do", async () => {
    const { url, refusals, hub } = await startHub();
    refusals.set("west", "Cluster west has not joined");
    const clock = new FakeClock();
    const { target } = await startMember();
    const { logged } = runAgent(url, await identityOf(west), target, { clock });
    const delays = (): number[] => logged.map((line) => Number(/"delayMs":(\d+)/.exec(line)?.[1]));
    for (let attempt = 1; attempt <= 12; attempt += 1) {
      await vi.waitFor(() => expect(logged).toHaveLength(attempt));
      await clock.fireNext();
    }
    expect(delays()[0]).toBeLessThanOrEqual(1_000);
    expect(delays().at(-1)).toBeGreaterThan(150_000);
    expect(Math.max(...delays())).toBeLessThanOrEqual(300_000);
    expect(logged.at(-1)).toContain("where the member has left its host for good, delete the agent");
    refusals.clear();
    await vi.waitFor(async () => {
      await clock.fireNext();
      expect(hub.state("west").connected).toBe(true);
    });
  });

  test("does not connect to a hub of another authority", async () => {
    const { hub, url } = await startHub();
    const other = await issueAuthority("hub", { now: Date.now(), lifetimeMs: 1_000_000 });
    const identity = { ...(await identityOf(west)), ca: other.cert };
    const { target } = await startMember();
    const { logged } = runAgent(url, identity, target, { clock: new FakeClock() });
    await vi.waitFor(() => expect(logged.join("")).toMatch(/certificate/));
    expect(hub.state("west").connections).toBe(0);
  });

  test("connects again after the hub was restarted", async () => {
    const first = await startHub();
    const { target } = await startMember();
    runAgent(first.url, await identityOf(west), target);
    await connected(first.hub);
    await first.hub.close();
    const second = await startHub({ port: first.port });
    await connected(second.hub);
    const client = await memberClient(second.hub, "west");
    await expect(client.raw({ method: "GET", path: "/version" })).resolves.toEqual({ path: "/version" });
  });

  test("connects again at once after connections that lasted, however often they are cut", async () => {
    const { hub, url, refusals } = await startHub();
    const { target } = await startMember();
    const clock = new FakeClock();
    const { agent, logged } = runAgent(url, await identityOf(west), target, { clock });
    for (let cut = 1; cut <= 3; cut += 1) {
      await vi.waitFor(() => expect(agent.connected).toBe(true), { timeout: 10_000 });
      await clock.advance(10_000);
      refusals.set("west", "cut");
      hub.recheck("west");
      refusals.clear();
      await vi.waitFor(() => expect(logged).toHaveLength(2 * cut));
      await clock.fireNext();
    }
    const delays = logged.flatMap((line) => (JSON.parse(line) as { delayMs?: number }).delayMs ?? []);
    expect(Math.max(...delays)).toBeLessThanOrEqual(1_000);
  });

  test("connects through an HTTP proxy, with each of its connections", async () => {
    const { hub, url, port } = await startHub();
    const { target } = await startMember();
    const proxy = await connectProxy();
    onTestFinished(() => proxy.close());
    runAgent(url, await identityOf(west), target, { proxyUrl: proxy.url });
    await connected(hub);
    await hub.dial("west", never);
    expect(proxy.requests).toEqual([`127.0.0.1:${port}`, `127.0.0.1:${port}`]);
  });

  test("ends when it has heard nothing of a frozen hub for 30 s, and its streams with it", async () => {
    const { hub, url } = await startHub({ clock: new FakeClock() });
    const accepted: Socket[] = [];
    const target = await tcpServer((socket) => accepted.push(socket.resume()));
    const clock = new FakeClock();
    const { logged } = runAgent(url, await identityOf(west), target, { clock });
    await connected(hub);
    const socket = await hub.dial("west", never);
    await vi.waitFor(() => expect(accepted).toHaveLength(1));
    await clock.advance(30_000);
    await vi.waitFor(() => expect(logged.join("")).toContain("nothing was heard for 30 s"));
    await vi.waitFor(() => expect([accepted[0]?.closed, socket.closed]).toEqual([true, true]));
  });

  test("is gone for the hub after 30 s of silence, and its streams with it", async () => {
    const clock = new FakeClock();
    const { hub, url } = await startHub({ clock });
    const target = await tcpServer((socket) => socket.resume());
    // The agent's clock stands still: it pings no more.
    runAgent(url, await identityOf(west), target, { clock: new FakeClock() });
    await connected(hub);
    const socket = await hub.dial("west", never);
    await clock.advance(30_000);
    expect(hub.state("west")).toMatchObject({ connected: false, streams: 0 });
    await vi.waitFor(() => expect(socket.closed).toBe(true));
    await expect(hub.dial("west", AbortSignal.timeout(20))).rejects.toThrow("nothing was heard for 30 s");
  });

  test("passes all bytes of an upgraded connection both ways, also of a server that prefers HTTP/2", async () => {
    const { hub, url } = await startHub();
    const { server, target } = await startMember();
    server.on("upgrade", (_request, socket) => {
      socket.on("error", () => {});
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
      socket.pipe(socket);
    });
    runAgent(url, await identityOf(west), target);
    await connected(hub);
    const client = await memberClient(hub, "west");
    const answer = await client.upgradePath("/api/v1/namespaces/a/pods/b/exec", {
      method: "POST",
      query: new URLSearchParams(),
      protocol: "SPDY/3.1",
      headers: {},
    });
    if (answer.socket === undefined) throw new Error(answer.text);
    const sent = Buffer.alloc(5 * MIB, "0123456789abcdef0");
    const { socket } = answer;
    const received: Buffer[] = [];
    let size = 0;
    socket.on("data", (bytes: Buffer) => {
      received.push(bytes);
      size += bytes.length;
    });
    socket.write(sent);
    await vi.waitFor(() => expect(size).toBe(sent.length), { timeout: 20_000 });
    expect(Buffer.concat(received).equals(sent)).toBe(true);
    socket.end();
    await once(socket, "close");
    await vi.waitFor(() => expect(hub.state("west").streams).toBe(0));
  });

  test("closes connections to a hub that reads no more, when their control connection ends", async () => {
    const target = await tcpServer((socket) => socket.write(Buffer.alloc(MIB)));
    const [control, hubsControl] = duplexPair();
    const [stream] = duplexPair();
    const agent = new Agent({
      hub: { upgradePath: async (path) => ({ socket: path === CONTROL_PATH ? control : stream, headers: {} }) },
      target,
      version: "1.2.3",
      credentials: () => Promise.reject(new Error("not in this test")),
      onAuthorities: () => {},
      clock: new FakeClock(),
      log: createLogger({ level: "silent" }),
    });
    const stopping = new AbortController();
    const running = agent.run(stopping.signal);
    hubsControl.write(`{"type":"dial","id":"${"0".repeat(32)}"}\n`);
    await vi.waitFor(() => expect(stream.writableNeedDrain).toBe(true));
    hubsControl.end();
    await vi.waitFor(() => expect(stream.destroyed).toBe(true));
    stopping.abort();
    await running;
  });

  test("passes what its API server sent before it ended the connection", async () => {
    const { hub, url } = await startHub();
    const sent = Buffer.alloc(3 * MIB, "x");
    const target = await tcpServer((socket) => socket.end(sent));
    runAgent(url, await identityOf(west), target);
    await connected(hub);
    const received = await readAll(await hub.dial("west", never));
    expect(received).toHaveLength(sent.length);
  });

  test("loses no byte of many streams that end while their readers pause and go on to send", async () => {
    const { hub, url } = await startHub();
    const sizes = Array.from({ length: 24 }, (_, index) => 1_000_000 + index * 32_767);
    const sent = sizes.map((size, index) => randomBytes(size).fill(index, size - 8));
    const target = await tcpServer((socket) => {
      socket.once("data", ([index = 0]: Buffer) => socket.end(sent[index] ?? ""));
    });
    runAgent(url, await identityOf(west), target);
    await connected(hub);
    const read = sent.map(async (_bytes, index) => {
      const socket = await hub.dial("west", never);
      socket.on("error", () => {});
      socket.write(Buffer.of(index));
      const chunks: Buffer[] = [];
      socket.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        if (chunks.length % (1 + (index % 5)) !== 0) return;
        socket.pause();
        if (chunks.length % 8 === 0) socket.write("ping");
        setTimeout(() => socket.resume(), index % 7);
      });
      await once(socket, "close");
      return Buffer.concat(chunks);
    });
    const arrived = await Promise.all(read);
    expect(arrived.map(({ length }) => length)).toEqual(sizes);
    expect(arrived.every((bytes, index) => bytes.equals(sent[index] ?? Buffer.of()))).toBe(true);
  });

  test("keeps the memory of a stalled reader bounded, and its other streams going", { timeout: 60_000 }, async () => {
    const { hub, url } = await startHub();
    let stalledBytes = 0;
    const chunk = Buffer.alloc(65_536);
    const target = await tcpServer((socket) => {
      socket.once("data", (first: Buffer) => {
        if (first.toString() !== "endless") return socket.pipe(socket);
        const pour = (): void => {
          while (!socket.destroyed && socket.write(chunk)) stalledBytes += chunk.length;
        };
        socket.on("drain", pour);
        pour();
        return undefined;
      });
      socket.once("data", (first: Buffer) => {
        if (first.toString() !== "endless") socket.write(first);
      });
    });
    runAgent(url, await identityOf(west), target);
    await connected(hub);
    const stalled = await hub.dial("west", never);
    stalled.on("error", () => {});
    stalled.pause();
    stalled.write("endless");
    await vi.waitFor(async () => {
      const before = stalledBytes;
      for (let turns = 0; turns < 200; turns += 1) await turn();
      expect(before).toBeGreaterThan(0);
      expect(stalledBytes).toBe(before);
    }, 20_000);
    // Kernels keep a few MiB for each of two connections.
    expect(stalledBytes).toBeLessThan(40 * MIB);
    for (let batch = 0; batch < 10; batch += 1) {
      const others = Array.from({ length: 10 }, async (_, index) => {
        const socket = await hub.dial("west", never);
        socket.on("error", () => {});
        socket.write(`n${index}`);
        const [bytes] = (await once(socket, "data")) as [Buffer];
        return bytes.toString();
      });
      expect(await Promise.all(others)).toEqual(others.map((_, index) => `n${index}`));
    }
    expect(hub.state("west").streams).toBe(101);
  });

  test("requests a token again until it has one", async () => {
    const { hub, url, credentials } = await startHub({ gatekeeper: { wantsCredentials: () => true } });
    const { target } = await startMember();
    const clock = new FakeClock();
    const given = { server: "https://10.0.0.1", token: "t", expires: "", certificateAuthority: "" };
    let attempts = 0;
    const request = async () => {
      attempts += 1;
      if (attempts < 3) throw new Error("etcdserver: request timed out");
      return given;
    };
    runAgent(url, await identityOf(west), target, { clock, credentials: request });
    await connected(hub);
    await vi.waitFor(async () => {
      await clock.advance(1_000);
      expect(credentials).toEqual([given]);
    });
    expect(attempts).toBe(3);
  });

  test("requests one token at a time, however often the hub asks", async () => {
    const { hub, url } = await startHub();
    const { target } = await startMember();
    let attempts = 0;
    const credentials = (): Promise<never> => {
      attempts += 1;
      return Promise.reject(new Error("etcdserver: request timed out"));
    };
    runAgent(url, await identityOf(west), target, { clock: new FakeClock(), credentials });
    await connected(hub);
    for (let asked = 0; asked < 5; asked += 1) hub.askForCredentials("west", "host");
    // The hub's messages arrive in order: the dial is answered after them.
    await hub.dial("west", never);
    expect(attempts).toBe(1);
  });

  test("gives the authorities that the hub announces to its owner", async () => {
    const { hub, url } = await startHub();
    const announced: string[] = [];
    const { target } = await startMember();
    runAgent(url, await identityOf(west), target, { onAuthorities: (authorities) => announced.push(authorities) });
    await connected(hub);
    await vi.waitFor(async () => expect(announced).toEqual([(await hubAuthority).cert]));
  });
});

// In one process with the hub: each agent costs 15 ms of processor time for the two handshakes, and its patience is real.
describe("50 agents", () => {
  test("are all back within 60 s after the hub was restarted", { timeout: 120_000 }, async () => {
    const first = await startHub();
    const { target } = await startMember();
    const names = Array.from({ length: 50 }, (_, index) => `member-${index}`);
    const areConnected = (hub: Hub, some: readonly string[]): Promise<void> =>
      vi.waitFor(() => expect(some.filter((name) => !hub.state(name).connected)).toEqual([]), {
        timeout: 60_000,
        interval: 100,
      });
    // Only the return is a storm.
    for (let begin = 0; begin < names.length; begin += 10) {
      const some = names.slice(begin, begin + 10);
      for (const cluster of some) runAgent(first.url, await identityOf({ cluster, uid: "1" }), target);
      await areConnected(first.hub, some);
    }
    await first.hub.close();
    const second = await startHub({ port: first.port });
    await areConnected(second.hub, names);
    // No agent was turned away and came again.
    expect(second.changes).toHaveLength(names.length);
  });
});
