import { Agent, WebSocket } from "undici";
import type { ClusterInfo } from "../clusters/types.ts";
import { eventually } from "../harness/wait.ts";

/** A stream as the Python client opens it: a WebSocket by GET, whose frames begin with the number of their channel. */
export class Channels implements AsyncDisposable {
  readonly #socket: WebSocket;
  readonly #agent: Agent;
  readonly #received = new Map<number, Buffer>();
  /** Resolves to the close code. */
  readonly closed: Promise<number>;

  constructor(cluster: ClusterInfo, path: string, protocol = "v4.channel.k8s.io") {
    this.#agent = new Agent({ connect: { ca: cluster.caData } });
    const url = `${cluster.server.replace(/^http/, "ws")}${path}`;
    this.#socket = new WebSocket(url, {
      protocols: [protocol],
      headers: { authorization: `Bearer ${cluster.token}` },
      dispatcher: this.#agent,
    });
    this.#socket.binaryType = "arraybuffer";
    this.#socket.addEventListener("message", ({ data }) => {
      const frame = data instanceof ArrayBuffer ? Buffer.from(data) : Buffer.from(String(data));
      const channel = frame[0] ?? -1;
      this.#received.set(channel, Buffer.concat([this.received(channel), frame.subarray(1)]));
    });
    this.#socket.addEventListener("error", () => {});
    this.closed = new Promise((resolve) => this.#socket.addEventListener("close", ({ code }) => resolve(code)));
  }

  /** Everything that has come on one channel. */
  received(channel: number): Buffer {
    return this.#received.get(channel) ?? Buffer.alloc(0);
  }

  /** Resolves when the server has agreed; to the protocol that it chose. */
  async opened(): Promise<string> {
    await eventually(() => this.#socket.readyState === WebSocket.OPEN, { what: "an open WebSocket" });
    return this.#socket.protocol;
  }

  send(channel: number, data: Buffer | string): void {
    this.#socket.send(Buffer.concat([Buffer.from([channel]), Buffer.from(data)]));
  }

  /** Resolves when a channel's bytes look like this. */
  async says(channel: number, pattern: RegExp): Promise<RegExpExecArray> {
    return eventually(() => pattern.exec(this.received(channel).toString()), {
      what: `${pattern} on channel ${channel}`,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await this.#agent.destroy();
  }
}
