import { fork } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Dial } from "../../../src/kube/client.ts";
import { rssMb } from "../../bench/process-usage.ts";
import { dialThrough } from "../../support/tunnel/dial-socket.ts";
import type { HubProcessMessage } from "../../support/tunnel/hub-process.ts";

// A hub and an agent in processes of their own carry streams whose readers stall.

const STALLED = 10;
const LIVE = 100;
// A stream may fill the buffers of four sockets and the kernel's; without a bound this is passed within seconds.
const MOST_GROWTH_MB = 200;
const MOST_IN_FLIGHT = 100e6;
const SETTLED_MS = 500;
const CHUNK = Buffer.alloc(65_536, "x");

interface Flood {
  /** Bytes that the kernel has taken, or Node keeps. */
  readonly written: () => number;
}

/** Writes without end as fast as the other side reads. */
function flood(socket: Socket): Flood {
  let written = 0;
  const more = (): void => {
    while (!socket.destroyed && written < 10 * MOST_IN_FLIGHT) {
      written += CHUNK.length;
      if (!socket.write(CHUNK)) break;
    }
  };
  socket.on("drain", more);
  more();
  return { written: () => written };
}

/** Starts a server whose connections do as the first byte says: `f` floods, `s` never reads, anything else is echoed. */
async function startTarget(floods: Flood[]): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", (first: Buffer) => {
      const [kind] = first.toString();
      if (kind === "f") floods.push(flood(socket));
      else if (kind === "s") socket.pause();
      else {
        socket.write(first);
        socket.pipe(socket);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function startProcesses(port: number): Promise<{ readonly dial: Dial; readonly pids: readonly number[] }> {
  const target = JSON.stringify({ host: "127.0.0.1", port });
  const hub = fork(join(import.meta.dirname, "../../support/tunnel/hub-process.ts"), [target]);
  onTestFinished(() => {
    if (hub.connected) hub.disconnect();
  });
  const [{ socket, agentPid }] = (await once(hub, "message")) as [HubProcessMessage];
  return { dial: dialThrough(socket, "west"), pids: [hub.pid ?? 0, agentPid] };
}

/** Opens a connection through the tunnel and says to the target how to treat it. */
async function open(dial: Dial, first: string): Promise<Socket> {
  const socket = await dial(AbortSignal.timeout(30_000));
  socket.on("error", () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  socket.write(first);
  return socket;
}

/** Waits until no flood moves any more. Throws once more is in flight than buffers may hold. */
async function settled(floods: readonly Flood[]): Promise<void> {
  const total = (): number => floods.reduce((sum, { written }) => sum + written(), 0);
  for (let before = -1; total() !== before; ) {
    before = total();
    if (before > MOST_IN_FLIGHT * STALLED) throw new Error(`${before} bytes are in flight, and more come`);
    await sleep(SETTLED_MS);
  }
}

async function echoes(dial: Dial): Promise<void> {
  const socket = await open(dial, "echo");
  const [bytes] = (await once(socket, "data")) as [Buffer];
  expect(bytes.toString()).toBe("echo");
}

describe("memory of hub and agent", () => {
  test("stays bounded while readers stall and writers flood, and other streams go on", async () => {
    const floods: Flood[] = [];
    const { dial, pids } = await startProcesses(await startTarget(floods));
    // Loads what a first stream needs.
    await echoes(dial);
    const before = pids.map(rssMb);
    for (let index = 0; index < STALLED; index += 1) {
      (await open(dial, "f")).pause();
      floods.push(flood(await open(dial, "s")));
    }
    await expect.poll(() => floods.length).toBe(2 * STALLED);
    await settled(floods);
    await Promise.all(Array.from({ length: LIVE }, () => echoes(dial)));
    const growth = pids.map((pid, index) => rssMb(pid) - (before[index] ?? 0));
    for (const each of growth) expect(each).toBeLessThan(MOST_GROWTH_MB);
  });
});
