import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type JoinedSockets, joinSockets } from "../../../src/runtime/joined-sockets.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { readAll, type SocketPair, socketPair } from "../../support/streams/socket-pair.ts";

// kubectl's side and the kubelet's, with Legation's two sockets between them.
let person: Socket;
let kubelet: Socket;
let server: SocketPair;
let clock: FakeClock;
let stream: JoinedSockets;
let ends: boolean;
beforeEach(async () => {
  const client = await socketPair(onTestFinished);
  server = await socketPair(onTestFinished);
  person = client.dialled;
  kubelet = server.accepted;
  clock = new FakeClock();
  ends = false;
  stream = joinSockets(client.accepted, server.dialled, clock);
  void stream.closed.then(() => {
    ends = true;
  });
});

const LARGE = randomBytes(8 * 2 ** 20);
const LARGE_HASH = sha256(LARGE);

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

async function hashOf(reading: Promise<Buffer | "cut">): Promise<string> {
  const bytes = await reading;
  return bytes === "cut" ? bytes : sha256(bytes);
}

describe("joined sockets", () => {
  test("carry bytes in both directions at once", async () => {
    const [there, back] = [readAll(kubelet), readAll(person)];
    person.write(LARGE);
    kubelet.write(LARGE);
    await expect.poll(() => kubelet.bytesRead).toBe(LARGE.length);
    await expect.poll(() => person.bytesRead).toBe(LARGE.length);
    kubelet.end();
    expect(await hashOf(there)).toBe(LARGE_HASH);
    expect(await hashOf(back)).toBe(LARGE_HASH);
    await stream.closed;
  });

  test("read a socket that was paused until then", async () => {
    const [client, other] = [await socketPair(onTestFinished), await socketPair(onTestFinished)];
    client.accepted.pause();
    joinSockets(client.accepted, other.dialled, clock);
    const there = readAll(other.accepted);
    client.dialled.end("hello");
    expect(String(await there)).toBe("hello");
  });

  test("free each large buffer once it has been written", async () => {
    const passed: Buffer[] = [];
    server.dialled.on("data", (chunk: Buffer) => passed.push(chunk));
    const back = readAll(person);
    kubelet.end(LARGE);
    expect(await hashOf(back)).toBe(LARGE_HASH);
    await stream.closed;
    const large = passed.filter(({ buffer }) => buffer.byteLength >= 8_192);
    expect(passed.length).toBeGreaterThan(10);
    expect(large).toEqual([]);
  });

  test("deliver all bytes that the server sent before its end, and then end", async () => {
    const back = readAll(person);
    kubelet.end(LARGE);
    expect(await hashOf(back)).toBe(LARGE_HASH);
    await stream.closed;
    expect(clock.pending).toBe(0);
  });

  test("deliver all bytes to a slow reader, too, long after the server's end", async () => {
    kubelet.end(LARGE);
    await clock.advance(3_600_000);
    expect(ends).toBe(false);
    expect(await hashOf(readAll(person))).toBe(LARGE_HASH);
    await stream.closed;
  });

  test("deliver what the kernel holds for a slow reader that goes on to send", async () => {
    const [client, other] = [await socketPair(onTestFinished), await socketPair(onTestFinished)];
    const reader = client.dialled;
    joinSockets(client.accepted, other.dialled, clock);
    other.accepted.end(LARGE);
    const closed = once(reader, "close");
    const read: Buffer[] = [];
    while (!client.accepted.writableFinished) {
      const chunk: unknown = reader.read();
      if (chunk instanceof Buffer) read.push(chunk);
      await sleep(1);
    }
    await clock.advance(30_000);
    // A ping of a WebSocket.
    reader.write("ping");
    await sleep(50);
    await clock.advance(20_000);
    reader.on("data", (chunk: Buffer) => read.push(chunk));
    await closed;
    expect(sha256(Buffer.concat(read))).toBe(LARGE_HASH);
  });

  test("hold no more of a reader that does not read than its buffers", async () => {
    const pump = (): void => {
      while (kubelet.write(LARGE.subarray(0, 65_536)));
    };
    kubelet.on("drain", pump);
    pump();
    let before = -1;
    await expect
      .poll(() => {
        const grown = kubelet.bytesWritten - before;
        before = kubelet.bytesWritten;
        return grown;
      })
      .toBe(0);
    // Node holds kilobytes; the kernel holds some megabytes for each connection.
    expect(before).toBeLessThan(32 * 2 ** 20);
    expect(kubelet.writableLength).toBeGreaterThan(0);
    const held = before;
    person.resume();
    await expect.poll(() => kubelet.bytesWritten).toBeGreaterThan(held + LARGE.length);
  });

  test.each([
    ["ends", (socket: Socket) => socket.end()],
    ["is cut", (socket: Socket) => socket.resetAndDestroy()],
  ])("end at the kubelet when the user %s", async (_how, leave) => {
    const arrived = readAll(kubelet);
    person.write("last words");
    await expect.poll(() => kubelet.bytesRead).toBe(10);
    leave(person);
    expect(String(await arrived)).toBe("last words");
    kubelet.end();
    await stream.closed;
  });

  test("end at the user's side when the kubelet is cut", async () => {
    const arrived = readAll(person);
    kubelet.write("last words");
    await expect.poll(() => person.bytesRead).toBe(10);
    kubelet.resetAndDestroy();
    expect(String(await arrived)).toBe("last words");
    await stream.closed;
  });

  test("do not wait for a kubelet that no longer reads, once the user has gone", async () => {
    const pump = (): void => {
      while (person.write(LARGE.subarray(0, 65_536)));
    };
    pump();
    await expect.poll(() => person.writableLength).toBeGreaterThan(0);
    person.destroy();
    await expect.poll(() => clock.pending).toBeGreaterThan(0);
    await clock.advance(5_000);
    await stream.closed;
  });

  test("do not wait for a kubelet that does not end its side", async () => {
    kubelet.resume();
    person.end();
    await expect.poll(() => clock.pending).toBeGreaterThan(0);
    await clock.advance(5_000);
    await stream.closed;
  });

  test("end on both sides when stopped, whatever is in flight", async () => {
    const arrived = readAll(person);
    kubelet.write("before");
    await expect.poll(() => person.bytesRead).toBe(6);
    stream.end();
    expect(String(await arrived)).toBe("before");
    kubelet.write("too late");
    kubelet.end();
    await stream.closed;
  });
});
