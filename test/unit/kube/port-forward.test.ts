import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { constants, inflateSync } from "node:zlib";
import { expect, onTestFinished, test, vi } from "vitest";
import type { ClusterClient, UpgradeOptions } from "../../../src/kube/client.ts";
import { PortForwards } from "../../../src/kube/port-forward.ts";
import { socketPair } from "../../support/streams/socket-pair.ts";

const DATA = 3;
const ERRORS = 1;
const PING = 6;
const RST_STREAM = 3;
const RESET = Buffer.from("8003000300000008", "hex");

const POD = { namespace: "team", name: "web", uid: "a" };

interface Frame {
  readonly stream: number;
  readonly end: boolean;
  readonly data: Buffer;
}

/** The other end of a forwarded port, which reads and writes frames by hand. */
class Kubelet {
  readonly socket: Socket;
  readonly #chunks: Buffer[] = [];

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => this.#chunks.push(chunk));
  }

  send(stream: number, text: string, end = false): Buffer {
    const data = Buffer.from(text);
    return Buffer.concat([uint32(stream), uint32(data.length + (end ? 2 ** 24 : 0)), data]);
  }

  /** The headers of both streams, as a decompressor reads them, and the data frames after. */
  read(): {
    readonly headers: readonly string[];
    readonly frames: readonly Frame[];
    readonly control: readonly number[];
  } {
    let bytes = Buffer.concat(this.#chunks);
    const compressed: Buffer[] = [];
    const frames: Frame[] = [];
    const control: number[] = [];
    while (bytes.length >= 8) {
      const length = bytes.readUIntBE(5, 3);
      const payload = bytes.subarray(8, 8 + length);
      if ((bytes[0] ?? 0) < 0x80) frames.push({ stream: bytes.readUInt32BE(0), end: bytes[4] === 1, data: payload });
      else if (bytes.readUInt16BE(2) === 1) compressed.push(payload.subarray(10));
      else control.push(bytes.readUInt16BE(2));
      bytes = bytes.subarray(8 + length);
    }
    const headers = inflateSync(Buffer.concat(compressed), { finishFlush: constants.Z_SYNC_FLUSH });
    return { headers: texts(headers), frames, control };
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Returns the texts of header blocks: pairs that are counted, each text with its length. */
function texts(block: Buffer): string[] {
  const found: string[] = [];
  let at = 0;
  while (at < block.length) {
    const pairs = block.readUInt32BE(at);
    at += 4;
    for (let text = 0; text < 2 * pairs; text += 1) {
      const length = block.readUInt32BE(at);
      found.push(block.toString("utf8", at + 4, at + 4 + length));
      at += 4 + length;
    }
  }
  return found;
}

async function forwarded(): Promise<{ stream: Duplex; kubelet: Kubelet; asked: UpgradeOptions }> {
  const { accepted, dialled } = await socketPair(onTestFinished);
  const upgrade = vi.fn(async (..._: unknown[]) => ({ socket: dialled, headers: {} }));
  const options = { signal: new AbortController().signal, timeoutMs: 1_000 };
  const opened = await new PortForwards({ upgrade }).forward(POD, 8080, options);
  if (!("stream" in opened)) throw new Error("not opened");
  opened.stream.on("error", () => {});
  return { stream: opened.stream, kubelet: new Kubelet(accepted), asked: upgrade.mock.calls[0]?.[3] as UpgradeOptions };
}

test("opens a stream of errors and one of data, as kubectl does", async () => {
  const { kubelet, asked } = await forwarded();
  expect(asked).toMatchObject({ method: "POST", protocol: "SPDY/3.1" });
  await vi.waitUntil(() => kubelet.read().frames.length > 0);
  const { headers, frames } = kubelet.read();
  const port = ["port", "8080", "requestid", "0"];
  expect(headers).toEqual(["streamtype", "error", ...port, "streamtype", "data", ...port]);
  expect(frames).toEqual([{ stream: ERRORS, end: true, data: Buffer.alloc(0) }]);
});

test.each([1, 3, 7, 8, 9, 1_000])("reads frames that come in parts of %i bytes", async (size) => {
  const { stream, kubelet } = await forwarded();
  const all = Buffer.concat([
    // An answer to the opened stream, which says nothing new.
    Buffer.from("800300020000000400000003", "hex"),
    kubelet.send(DATA, "hello "),
    kubelet.send(DATA, ""),
    kubelet.send(DATA, "world".repeat(100)),
    kubelet.send(DATA, "", true),
  ]);
  for (let at = 0; at < all.length; at += size) {
    kubelet.socket.write(all.subarray(at, at + size));
    await turn();
  }
  expect(String(await buffer(stream))).toBe(`hello ${"world".repeat(100)}`);
});

test("sends its end once the server has been silent", async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const { stream, kubelet } = await forwarded();
  stream.end("a request");
  await vi.waitUntil(() => kubelet.read().frames.length > 1);
  const isEnded = (): boolean => kubelet.read().frames.some(({ stream: id, end }) => id === DATA && end);
  for (let chunk = 0; chunk < 3; chunk += 1) {
    vi.advanceTimersByTime(5_000);
    kubelet.socket.write(kubelet.send(DATA, "a part"));
    await once(stream, "data");
    expect(isEnded()).toBe(false);
  }
  vi.advanceTimersByTime(10_000);
  await vi.waitUntil(isEnded);
});

test("sends bytes, and holds its end back until the server ends", async () => {
  const { stream, kubelet } = await forwarded();
  stream.end("a request");
  await vi.waitUntil(() => kubelet.read().frames.length > 1);
  expect(kubelet.read().frames.slice(1)).toEqual([{ stream: DATA, end: false, data: Buffer.from("a request") }]);
  kubelet.socket.write(kubelet.send(DATA, "a response", true));
  expect(String(await buffer(stream))).toBe("a response");
  await vi.waitUntil(() => kubelet.read().control.includes(RST_STREAM));
});

test("ends when the kubelet resets the stream without an error, as after the end of the pod's connection", async () => {
  const { stream, kubelet } = await forwarded();
  kubelet.socket.write(Buffer.concat([kubelet.send(DATA, "bye"), RESET, uint32(DATA), uint32(5)]));
  expect(String(await buffer(stream))).toBe("bye");
  await vi.waitUntil(() => stream.closed);
  expect(stream.errored).toBeNull();
});

test("fails with the kubelet's words", async () => {
  const { stream, kubelet } = await forwarded();
  const message = "error forwarding port 8080: connection refused";
  kubelet.socket.write(Buffer.concat([kubelet.send(ERRORS, message), RESET, uint32(DATA), uint32(5)]));
  await expect(buffer(stream)).rejects.toThrow(message);
});

test("fails with words that come after the end of data, as containerd's do", async () => {
  const { stream, kubelet } = await forwarded();
  kubelet.socket.write(kubelet.send(DATA, "", true));
  await turn();
  await turn();
  kubelet.socket.write(kubelet.send(ERRORS, "connection refused", true));
  await expect(buffer(stream)).rejects.toThrow("connection refused");
});

test("ends once both streams have, and not later", async () => {
  const { stream, kubelet } = await forwarded();
  const began = performance.now();
  kubelet.socket.write(Buffer.concat([kubelet.send(DATA, "bye", true), kubelet.send(ERRORS, "", true)]));
  expect(String(await buffer(stream))).toBe("bye");
  expect(performance.now() - began).toBeLessThan(400);
});

test("fails when the connection is cut before the end", async () => {
  const { stream, kubelet } = await forwarded();
  kubelet.socket.destroy();
  await expect(buffer(stream)).rejects.toThrow("API server");
});

test("reads no further than its reader", async () => {
  const { stream, kubelet } = await forwarded();
  kubelet.socket.write(kubelet.send(DATA, "x".repeat(14 * 2 ** 20)));
  await vi.waitUntil(() => stream.readableLength > 0, { timeout: 20_000 });
  await turn();
  expect(stream.readableLength).toBeLessThan(2 ** 20);
  expect(kubelet.socket.writableLength).toBeGreaterThan(0);
});

test("answers the server's pings, and cancels the stream when it is given up", async () => {
  const { stream, kubelet } = await forwarded();
  kubelet.socket.write(Buffer.concat([Buffer.from("8003000600000004", "hex"), uint32(2)]));
  await vi.waitUntil(() => kubelet.read().control.includes(PING));
  stream.destroy();
  await vi.waitUntil(() => kubelet.read().control.includes(RST_STREAM));
});

test("keeps an idle connection by pings, and gives it up when none is answered", async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const { stream, kubelet } = await forwarded();
  vi.advanceTimersByTime(30_000);
  await vi.waitUntil(() => kubelet.read().control.includes(PING));
  kubelet.socket.write(Buffer.concat([Buffer.from("8003000600000004", "hex"), uint32(1)]));
  await new Promise((resolve) => setTimeout(resolve, 50));
  vi.advanceTimersByTime(30_000);
  expect(stream.destroyed).toBe(false);
  vi.advanceTimersByTime(30_000);
  expect(stream.errored).toMatchObject({ message: "the API server does not answer any more" });
});

test("waits for a pod that does not read, until it has answered", async () => {
  vi.useFakeTimers({ toFake: ["setInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const { stream, kubelet } = await forwarded();
  stream.write(Buffer.alloc(65_537));
  vi.advanceTimersByTime(600_000);
  expect(stream.destroyed).toBe(false);
  kubelet.socket.write(kubelet.send(DATA, "done"));
  await once(stream, "data");
  vi.advanceTimersByTime(60_000);
  expect(stream.errored).toMatchObject({ message: "the API server does not answer any more" });
});

/** Opens port-forwards, with the kubelets' ends of their connections. */
function reusable(): { open: (uid?: string) => Promise<Duplex>; kubelets: Kubelet[] } {
  const kubelets: Kubelet[] = [];
  const upgrade = async (): Promise<{ socket: Socket; headers: object }> => {
    const { accepted, dialled } = await socketPair(onTestFinished);
    kubelets.push(new Kubelet(accepted));
    return { socket: dialled, headers: {} };
  };
  const forwards = new PortForwards({ upgrade: upgrade as ClusterClient["upgrade"] });
  const open = async (uid = "a"): Promise<Duplex> => {
    const options = { signal: new AbortController().signal, timeoutMs: 1_000 };
    const opened = await forwards.forward({ ...POD, uid }, 8080, options);
    if (!("stream" in opened)) throw new Error("not opened");
    return opened.stream.on("error", () => {});
  };
  return { open, kubelets };
}

const ENDED = Buffer.concat([RESET, uint32(DATA), uint32(5)]);

test("uses a connection again for the same pod once the pod has ended what it carried", async () => {
  const { open, kubelets } = reusable();
  const first = await open();
  const [kubelet] = kubelets;
  if (kubelet === undefined) throw new Error("not opened");
  first.end("one");
  kubelet.socket.write(Buffer.concat([kubelet.send(DATA, "bye"), ENDED]));
  expect(String(await buffer(first))).toBe("bye");
  await vi.waitUntil(() => first.closed);
  const second = await open();
  second.write("two");
  // The end of the earlier errors comes late.
  const again = [kubelet.send(ERRORS, "late", true), kubelet.send(7, "again", true), kubelet.send(5, "", true)];
  kubelet.socket.write(Buffer.concat(again));
  expect(String(await buffer(second))).toBe("again");
  const { headers, frames } = kubelet.read();
  const port = ["port", "8080", "requestid", "1"];
  expect(headers.slice(12)).toEqual(["streamtype", "error", ...port, "streamtype", "data", ...port]);
  expect(frames).toContainEqual({ stream: 7, end: false, data: Buffer.from("two") });
  expect(kubelets).toHaveLength(1);
});

test.each<[string, string, (stream: Duplex, kubelet: Socket) => unknown]>([
  ["this side gave the earlier one up", "a", (stream) => stream.destroy()],
  ["the kubelet closed the earlier one's", "a", (_, kubelet) => once(kubelet.end(ENDED), "close")],
  ["the earlier one was of another pod of that name", "b", (_, kubelet) => kubelet.write(ENDED)],
])("opens a new connection where %s", async (_, uid, end) => {
  const { open, kubelets } = reusable();
  const stream = await open();
  const [kubelet] = kubelets;
  if (kubelet === undefined) throw new Error("not opened");
  await end(stream.resume().end(), kubelet.socket);
  await vi.waitUntil(() => stream.closed);
  await open(uid);
  expect(kubelets).toHaveLength(2);
});
