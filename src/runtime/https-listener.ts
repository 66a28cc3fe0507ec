import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server, type ServerOptions } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { listenOn } from "./listening.ts";
import { Strangers } from "./strangers.ts";

export interface HttpsListenerOptions {
  readonly limits: ServerOptions;
  /** Headers beyond this number are lost in silence; 0 for no limit. Default: Node.js'. */
  readonly maxHeadersCount?: number;
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  readonly onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  readonly onSecure?: (socket: TLSSocket) => void;
  readonly onError: (error: Error) => void;
  /** Most connections that are not verified at a time. Default: no limit. */
  readonly mostStrangers?: number | undefined;
}

const HANDSHAKE_MS = 10_000;
// Shorter than the idle timeout of common load balancers. Detects a vanished host, so that no stream stays open forever.
const KEEP_ALIVE_DELAY_MS = 30_000;

/** Options of sockets whose bytes are to arrive at once, and which may be silent for long. */
export const LASTING_SOCKET: {
  readonly noDelay: true;
  readonly keepAlive: true;
  readonly keepAliveInitialDelay: number;
} = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS };

/** An HTTPS server that tracks its connections, and whose TLS options change while it runs. */
export class HttpsListener {
  readonly #server: Server;
  readonly #onError: (error: Error) => void;
  readonly #strangers: Strangers | undefined;
  /** Connections during the TLS handshake, by peer. */
  readonly #handshaking = new Map<string, Socket>();
  readonly #sockets = new Set<Socket>();

  constructor(tls: ServerOptions, options: HttpsListenerOptions) {
    this.#onError = options.onError;
    this.#strangers = options.mostStrangers === undefined ? undefined : new Strangers(options.mostStrangers);
    this.#server = createServer({
      ...tls,
      // Requested but not required: other clients have a token, and each request is checked.
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_MS,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
      ...options.limits,
    });
    if (options.maxHeadersCount !== undefined) this.#server.maxHeadersCount = options.maxHeadersCount;
    this.#server.on("connection", (socket: Socket) => {
      this.#strangers?.add(socket);
      const peer = peerOf(socket);
      this.#handshaking.set(peer, socket);
      // A later connection may have taken its place.
      socket.once("close", () => {
        if (this.#handshaking.get(peer) === socket) this.#handshaking.delete(peer);
      });
    });
    this.#server.on("secureConnection", (socket: TLSSocket) => {
      this.#handshaking.delete(peerOf(socket));
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      options.onSecure?.(socket);
    });
    this.#server.on("request", options.onRequest);
    this.#server.on("upgrade", (request, socket, head) => {
      socket.on("error", () => {});
      options.onUpgrade(request, socket, head);
    });
  }

  /** Open connections, upgraded ones among them. */
  get sockets(): Iterable<Socket> {
    return this.#sockets;
  }

  /** Resolves to the port. Rejects when it is not available. */
  listen(host: string, port: number): Promise<number> {
    return listenOn(this.#server, { host, port, onError: this.#onError });
  }

  /** Uses `tls` for new connections. Throws when it is unusable. */
  renew(tls: ServerOptions): void {
    this.#server.setSecureContext(tls);
  }

  /** Notes that the client has shown who it is, so that the connection is no stranger's. */
  verified(socket: TLSSocket): void {
    this.#strangers?.verified(socket);
  }

  /** Cuts connections without a request, and those that are still connecting. */
  cutIdle(): void {
    this.#cutHandshakes();
    this.#server.closeIdleConnections();
  }

  /** Stops listening; open connections go on. Resolves when the last one is closed. */
  stopListening(): Promise<void> {
    const closed = this.#closed();
    this.cutIdle();
    return closed;
  }

  /** Closes every connection except upgraded streams, which end by themselves. */
  async close(): Promise<void> {
    const closed = this.#closed();
    this.#server.closeAllConnections();
    this.#cutHandshakes();
    await closed;
  }

  async closeAll(): Promise<void> {
    const closed = this.#closed();
    this.#cutHandshakes();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #closed(): Promise<void> {
    return new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #cutHandshakes(): void {
    for (const socket of this.#handshaking.values()) socket.destroy();
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
