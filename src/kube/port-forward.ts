import { Duplex } from "node:stream";
import type { ClusterClient } from "./client.ts";
import { cancelStream, dataHeader, frameParts, ping, SpdyReader, synStream } from "./internal/spdy.ts";
import type { ObjectRef } from "./objects.ts";
import { pods } from "./resources.ts";
import { startTimer } from "./timer.ts";

/** A connection to a port of a pod, or the API server's refusal. */
export type PortForward = { readonly stream: Duplex } | { readonly status: number; readonly text: string };

interface ForwardOptions {
  readonly signal: AbortSignal;
  /** Deadline of the API server's response; ms. */
  readonly timeoutMs: number;
}

const ERRORS = 1;
const DATA = 3;
// Shorter than the idle timeout of common load balancers; kubectl sends pings every 5 s.
const PING_MS = 30_000;
const LAST_FRAMES_MS = 5_000;
// An end that is told apart from its error: other container runtimes may leave the stream of errors open.
const ERROR_WAIT_MS = 500;
// A kubelet's words are shorter, and a hostile one may send any.
const LONGEST_REFUSAL = 1_024;
// Once to twice this is the longest pause of an answer to a client that has ended.
const SILENCE_MS = 5_000;

/**
 * Opens a connection to a port of a pod, as `kubectl port-forward` does, but each on an HTTP connection of its own: so TCP's flow
 * control is the stream's, and a slow reader holds up no other. Rejects with KubeError.
 */
export async function forwardPort(
  client: Pick<ClusterClient, "upgrade">,
  ref: ObjectRef,
  port: number,
  { signal, timeoutMs }: ForwardOptions,
): Promise<PortForward> {
  const answer = await client.upgrade(pods, ref, "portforward", {
    method: "POST",
    query: new URLSearchParams(),
    protocol: "SPDY/3.1",
    headers: { "X-Stream-Protocol-Version": ["portforward.k8s.io"] },
    signal,
    timeoutMs,
  });
  if (answer.socket === undefined) return { status: answer.status, text: answer.text };
  return { stream: new ForwardedPort(answer.socket, port) };
}

/** The data stream of a forwarded port. Fails with the kubelet's words if it could not connect, or its connection was cut. */
class ForwardedPort extends Duplex {
  readonly #socket: Duplex;
  readonly #pings: NodeJS.Timeout;
  #ending: NodeJS.Timeout | undefined;
  #refusal = "";
  #pingId = 1;
  #isSilent = false;
  /** The server has ended the stream in both directions. */
  #isReset = false;
  /** The streams that the server has ended. */
  readonly #ended = new Set<number>();
  #errorWait: NodeJS.Timeout | undefined;

  constructor(socket: Duplex, port: number) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    const reader = new SpdyReader({
      onData: (stream, chunk) => this.#onData(stream, chunk),
      onEnd: (stream, reset) => this.#onEnd(stream, reset),
      onPing: (id) => {
        // Pings of the server have even numbers; others answer this side's.
        if (id % 2 === 0) socket.write(ping(id));
      },
      onProtocolError: (message) => this.destroy(new Error(message)),
    });
    socket.on("data", (chunk: Buffer) => {
      this.#isSilent = false;
      reader.read(chunk);
    });
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy(new Error("the connection to the API server was cut")));
    socket.on("end", () => this.destroy(new Error("the API server ended the connection")));
    const headers = (streamtype: string): Record<string, string> => ({
      streamtype,
      port: String(port),
      requestid: "0",
    });
    socket.write(
      Buffer.concat([
        synStream(ERRORS, headers("error"), true),
        dataHeader(ERRORS, 0, true),
        synStream(DATA, headers("data"), false),
      ]),
    );
    this.#pings = setInterval(() => this.#ping(), PING_MS).unref();
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, written: (error?: Error | null) => void): void {
    this.#socket.cork();
    for (const part of frameParts(chunk)) {
      this.#socket.write(dataHeader(DATA, part.length, false));
      this.#socket.write(part, part.byteOffset + part.length === chunk.byteOffset + chunk.length ? written : undefined);
    }
    this.#socket.uncork();
  }

  /**
   * Holds this side's end back until the server is silent: container runtimes close both directions a second after the end of one
   * (containerd, internal/cri/server/sandbox_portforward_linux.go), and an answer that takes longer would be lost.
   */
  override _final(done: (error?: Error | null) => void): void {
    done();
    let isSilent = false;
    this.#socket.on("data", () => {
      isSilent = false;
    });
    this.#ending = setInterval(() => {
      if (isSilent && !this.#socket.isPaused()) {
        clearInterval(this.#ending);
        this.#socket.write(dataHeader(DATA, 0, true));
      }
      isSilent = true;
    }, SILENCE_MS).unref();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearInterval(this.#pings);
    clearInterval(this.#ending);
    clearTimeout(this.#errorWait);
    if (!this.#socket.destroyed) {
      if (!this.#isReset) this.#socket.write(cancelStream(DATA));
      this.#socket.end(() => this.#socket.destroy());
      // Bytes that the server does not read must not keep the connection.
      startTimer(LAST_FRAMES_MS, () => this.#socket.destroy()).unref();
    }
    done(error);
  }

  #onData(stream: number, chunk: Buffer): void {
    if (stream === ERRORS) this.#refusal = (this.#refusal + chunk.toString()).slice(0, LONGEST_REFUSAL);
    else if (stream === DATA && !this.destroyed && !this.push(chunk)) this.#socket.pause();
  }

  /** Containerd ends the stream of data before its error, if any, and the stream of errors last. */
  #onEnd(stream: number, reset: boolean): void {
    if (this.#refusal !== "") {
      this.destroy(new Error(this.#refusal));
      return;
    }
    this.#ended.add(stream);
    if (!this.#ended.has(DATA)) return;
    if (!reset && !this.#ended.has(ERRORS)) {
      this.#errorWait ??= startTimer(ERROR_WAIT_MS, () => this.push(null));
      return;
    }
    clearTimeout(this.#errorWait);
    this.push(null);
    if (!reset || stream !== DATA) return;
    this.#isReset = true;
    this.end();
  }

  /** Tells a vanished API server by its silence, unless the reader is the one who waits. */
  #ping(): void {
    if (this.#socket.isPaused()) return;
    if (this.#isSilent) {
      this.destroy(new Error("the API server does not answer any more"));
      return;
    }
    this.#isSilent = true;
    this.#socket.write(ping(this.#pingId));
    this.#pingId += 2;
  }
}
