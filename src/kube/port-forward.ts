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

// Further connections would rarely be used within their time.
const MOST_IDLE = 16;
// A connection that vanished without a word is found out by the next client.
const IDLE_MS = 30_000;
// Shorter than the idle timeout of common load balancers; kubectl sends pings every 5 s.
const PING_MS = 30_000;
const LAST_FRAMES_MS = 5_000;
// An end that is told apart from its error: other container runtimes may leave the stream of errors open.
const ERROR_WAIT_MS = 500;
// A kubelet's words are shorter, and a hostile one may send any.
const LONGEST_REFUSAL = 1_024;
// The kernel takes so much for a process that does not read (half of tcp_rmem's default). More holds the server's answers to pings up.
const UNREAD_BYTES = 65_536;
// Once to twice this is the longest pause of an answer to a client that has ended.
const SILENCE_MS = 5_000;

/** A pod, by the uid that it does not share with an earlier one of its name. */
export interface ForwardedPod extends ObjectRef {
  readonly uid: string;
}

/**
 * Opens connections to ports of pods, as `kubectl port-forward` does, but one at a time on an HTTP connection: so TCP's flow control is
 * the stream's, and a slow reader holds up no other. An HTTP connection is used again once its pod has ended what it carried.
 */
export class PortForwards {
  readonly #client: Pick<ClusterClient, "upgrade">;
  /** By the pod's namespace, name and uid. */
  readonly #idle = new Map<string, Set<ForwardConnection>>();

  constructor(client: Pick<ClusterClient, "upgrade">) {
    this.#client = client;
  }

  /** Rejects with KubeError. */
  async forward(pod: ForwardedPod, port: number, options: ForwardOptions): Promise<PortForward> {
    const key = `${pod.namespace}/${pod.name} ${pod.uid}`;
    const idle = [...(this.#idle.get(key) ?? [])].at(-1);
    if (idle !== undefined) this.#forget(key, idle);
    const connection = idle ?? (await connectionTo(this.#client, pod, options));
    if (!(connection instanceof ForwardConnection)) return connection;
    return { stream: new ForwardedPort(connection, port, () => this.#keep(key, connection)) };
  }

  #keep(key: string, connection: ForwardConnection): void {
    const all = this.#idle.get(key) ?? new Set();
    if (all.size >= MOST_IDLE) {
      connection.end();
      return;
    }
    this.#idle.set(key, all.add(connection));
    connection.rest(IDLE_MS, () => this.#forget(key, connection));
  }

  #forget(key: string, connection: ForwardConnection): void {
    const all = this.#idle.get(key);
    all?.delete(connection);
    if (all?.size === 0) this.#idle.delete(key);
  }
}

async function connectionTo(
  client: Pick<ClusterClient, "upgrade">,
  ref: ObjectRef,
  { signal, timeoutMs }: ForwardOptions,
): Promise<ForwardConnection | { readonly status: number; readonly text: string }> {
  const answer = await client.upgrade(pods, ref, "portforward", {
    method: "POST",
    query: new URLSearchParams(),
    protocol: "SPDY/3.1",
    headers: { "X-Stream-Protocol-Version": ["portforward.k8s.io"] },
    signal,
    timeoutMs,
  });
  if (answer.socket === undefined) return { status: answer.status, text: answer.text };
  return new ForwardConnection(answer.socket);
}

/** An HTTP connection that was upgraded to port-forward of a pod. */
class ForwardConnection {
  readonly socket: Duplex;
  #port: ForwardedPort | undefined;
  #requests = 0;
  #rest: { readonly timer: NodeJS.Timeout; readonly onGone: () => void } | undefined;

  constructor(socket: Duplex) {
    this.socket = socket;
    const reader = new SpdyReader({
      onData: (stream, chunk) => this.#port?.received(stream, chunk),
      onEnd: (stream, reset) => this.#port?.ended(stream, reset),
      onPing: (id) => {
        // Pings of the server have even numbers; others answer this side's.
        if (id % 2 === 0) socket.write(ping(id));
      },
      onProtocolError: (message) => this.#fail(message),
    });
    socket.on("data", (chunk: Buffer) => {
      this.#port?.heard();
      reader.read(chunk);
    });
    socket.on("error", ({ message }) => this.#fail(message));
    socket.on("close", () => this.#fail("the connection to the API server was cut"));
    socket.on("end", () => this.#fail("the API server ended the connection"));
  }

  /** Opens the streams of a port, and returns the number of the request. */
  open(forwarded: ForwardedPort, port: number): number {
    clearTimeout(this.#rest?.timer);
    this.#rest = undefined;
    this.#port = forwarded;
    const request = this.#requests;
    this.#requests += 1;
    const [errors, data] = streamsOf(request);
    const headers = (streamtype: string): Record<string, string> => ({
      streamtype,
      port: String(port),
      requestid: String(request),
    });
    this.socket.write(
      Buffer.concat([
        synStream(errors, headers("error"), request === 0),
        dataHeader(errors, 0, true),
        synStream(data, headers("data"), false),
      ]),
    );
    return request;
  }

  /** Keeps the connection for another use, and ends it after this long. `onGone`: it cannot be used any more. */
  rest(ms: number, onGone: () => void): void {
    this.#port = undefined;
    this.socket.resume();
    this.#rest = { timer: startTimer(ms, () => this.#fail("unused")).unref(), onGone };
  }

  end(): void {
    this.#port = undefined;
    this.socket.end(() => this.socket.destroy());
    // Bytes that the server does not read must not keep the connection.
    startTimer(LAST_FRAMES_MS, () => this.socket.destroy()).unref();
  }

  #fail(message: string): void {
    this.#port?.destroy(new Error(message));
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest === undefined) return;
    clearTimeout(rest.timer);
    rest.onGone();
    this.end();
  }
}

function streamsOf(request: number): readonly [errors: number, data: number] {
  return [4 * request + 1, 4 * request + 3];
}

/** The data stream of a forwarded port. Fails with the kubelet's words if it could not connect, or its connection was cut. */
class ForwardedPort extends Duplex {
  readonly #connection: ForwardConnection;
  readonly #errors: number;
  readonly #data: number;
  readonly #onReusable: () => void;
  readonly #pings: NodeJS.Timeout;
  #ending: NodeJS.Timeout | undefined;
  #refusal = "";
  #pingId = 1;
  /** The server has sent nothing since the last ping. */
  #isSilent = false;
  /** Bytes that were sent since the pod last sent some: it may not have read them. */
  #unansweredBytes = 0;
  /** The server has sent nothing since this side's end was last held back. */
  #isQuiet = false;
  /** The server has ended the stream in both directions. */
  #isReset = false;
  /** The streams that the server has ended. */
  readonly #ended = new Set<number>();
  #errorWait: NodeJS.Timeout | undefined;

  /** `onReusable`: the connection is free for another port. */
  constructor(connection: ForwardConnection, port: number, onReusable: () => void) {
    super({ allowHalfOpen: true });
    this.#connection = connection;
    this.#onReusable = onReusable;
    [this.#errors, this.#data] = streamsOf(connection.open(this, port));
    this.#pings = setInterval(() => this.#ping(), PING_MS).unref();
  }

  get #socket(): Duplex {
    return this.#connection.socket;
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, written: (error?: Error | null) => void): void {
    this.#unansweredBytes += chunk.length;
    this.#socket.cork();
    for (const part of frameParts(chunk)) {
      this.#socket.write(dataHeader(this.#data, part.length, false));
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
    this.#isQuiet = false;
    this.#ending = setInterval(() => {
      if (this.#isQuiet && !this.#socket.isPaused()) {
        clearInterval(this.#ending);
        this.#socket.write(dataHeader(this.#data, 0, true));
      }
      this.#isQuiet = true;
    }, SILENCE_MS).unref();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearInterval(this.#pings);
    clearInterval(this.#ending);
    clearTimeout(this.#errorWait);
    if (!this.#socket.destroyed) {
      if (!this.#isReset) this.#socket.write(cancelStream(this.#data));
      // Bytes of a stream that this side gave up would stand before those of the next.
      if (error === null && this.#ended.has(this.#data)) this.#onReusable();
      else this.#connection.end();
    }
    done(error);
  }

  /** Notes that the server is there. */
  heard(): void {
    this.#isSilent = false;
    this.#isQuiet = false;
  }

  received(stream: number, chunk: Buffer): void {
    if (stream === this.#errors) this.#refusal = (this.#refusal + chunk.toString()).slice(0, LONGEST_REFUSAL);
    else if (stream === this.#data && !this.destroyed) {
      this.#unansweredBytes = 0;
      if (!this.push(chunk)) this.#socket.pause();
    }
  }

  /** Containerd ends the stream of data before its error, if any, and the stream of errors last. */
  ended(stream: number, reset: boolean): void {
    if (stream !== this.#errors && stream !== this.#data) return;
    if (this.#refusal !== "") {
      this.destroy(new Error(this.#refusal));
      return;
    }
    this.#ended.add(stream);
    if (!this.#ended.has(this.#data)) return;
    if (!reset && !this.#ended.has(this.#errors)) {
      this.#errorWait ??= startTimer(ERROR_WAIT_MS, () => this.push(null));
      return;
    }
    clearTimeout(this.#errorWait);
    this.push(null);
    if (!reset || stream !== this.#data) return;
    this.#isReset = true;
    this.end();
  }

  /** Tells a vanished API server by its silence, unless the reader waits, or the pod may do so. */
  #ping(): void {
    if (this.#socket.isPaused()) return;
    if (this.#isSilent && this.#unansweredBytes <= UNREAD_BYTES) {
      this.destroy(new Error("the API server does not answer any more"));
      return;
    }
    this.#isSilent = true;
    this.#socket.write(ping(this.#pingId));
    this.#pingId += 2;
  }
}
