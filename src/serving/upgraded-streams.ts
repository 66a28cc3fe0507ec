import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { UpgradeAnswer } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { type JoinedSockets, joinSockets } from "../runtime/joined-sockets.ts";
import { refuse, statusAnswer, switchProtocols } from "../runtime/upgrade-answers.ts";
import type { Logger } from "../telemetry/logger.ts";

/** A client's upgrade request, and how it is asked of the cluster that it is for. */
export interface StreamRequest {
  readonly socket: Duplex;
  /** Bytes that arrived after the request. */
  readonly head: Buffer;
  /** Label of the stream in metrics. */
  readonly member: string;
  readonly log: Logger;
  /** Asks for the upgrade. The signal fires when the client is gone, or the process ends. */
  readonly ask: (signal: AbortSignal) => Promise<UpgradeAnswer>;
}

interface UpgradedStreamsOptions {
  readonly clock: Clock;
  /** Message for clients whose stream does not open, since the process ends. */
  readonly stopping: string;
  /** Opens (1) and ends (-1), for metrics. */
  readonly onStream?: ((member: string, change: 1 | -1) => void) | undefined;
}

// Shorter than the idle timeout of common load balancers.
const KEEP_ALIVE_MS = 30_000;

/** Upgraded connections: exec, attach and port-forward. Each joins a client's connection to one of a member, byte by byte. */
export class UpgradedStreams {
  readonly #options: UpgradedStreamsOptions;
  readonly #open = new Set<JoinedSockets>();
  readonly #opening = new Set<AbortController>();
  #closed = false;

  constructor(options: UpgradedStreamsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Never rejects. Owns the socket from here on. */
  async open({ socket, head, member, log, ask }: StreamRequest): Promise<void> {
    socket.on("error", () => {});
    if (socket instanceof Socket) {
      socket.setTimeout(0);
      socket.setNoDelay(true);
      // Detects a vanished peer, since an idle stream may live for hours.
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
    }
    try {
      const answer = await this.#ask(socket, ask);
      if (answer.socket === undefined) {
        log.debug({ status: answer.status }, "stream refused");
        refuse(socket, answer, this.#options.clock);
        return;
      }
      if (this.#closed || socket.destroyed || answer.socket.destroyed) {
        answer.socket.destroy();
        socket.destroy();
        return;
      }
      switchProtocols(socket, answer.headers);
      if (head.length > 0) answer.socket.write(head);
      await this.#join(socket, answer.socket, member);
      log.debug("stream ended");
    } catch (error) {
      log.error({ err: error }, "stream failed");
      socket.destroy();
    }
  }

  /** Resolves within seconds. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const opening of this.#opening) opening.abort();
    const all = [...this.#open];
    for (const stream of all) stream.end();
    await Promise.all(all.map(({ closed }) => closed));
  }

  async #ask(socket: Duplex, ask: StreamRequest["ask"]): Promise<UpgradeAnswer> {
    if (this.#closed) return statusAnswer("ServiceUnavailable", this.#options.stopping);
    const abort = new AbortController();
    const gone = (): void => abort.abort();
    this.#opening.add(abort);
    socket.once("close", gone);
    try {
      const answer = await ask(abort.signal);
      // The request was given up for this reason.
      return this.#closed && answer.socket === undefined
        ? statusAnswer("ServiceUnavailable", this.#options.stopping)
        : answer;
    } finally {
      this.#opening.delete(abort);
      socket.removeListener("close", gone);
    }
  }

  async #join(client: Duplex, server: Duplex, member: string): Promise<void> {
    const stream = joinSockets(client, server, this.#options.clock);
    this.#open.add(stream);
    this.#options.onStream?.(member, 1);
    try {
      await stream.closed;
    } finally {
      this.#open.delete(stream);
      this.#options.onStream?.(member, -1);
    }
  }
}
