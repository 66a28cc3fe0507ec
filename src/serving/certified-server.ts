import { constants } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerOptions, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Certificate } from "../certificates/issue.ts";
import { Strangers } from "../runtime/strangers.ts";

export interface TlsMaterial {
  readonly certificate: Certificate;
  /** Authority of client certificates, PEM; undefined accepts no client certificates. */
  readonly clientAuthority: string | undefined;
}

export interface CertifiedServerOptions {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  readonly onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Called for errors of the listening socket. */
  readonly onError: (error: Error) => void;
  /** Milliseconds for a client to send a whole request; 0 for no limit. Default: Node.js'. */
  readonly requestTimeoutMs?: number;
  /** Most connections without a verified client certificate at a time. Default: no limit, where clients have tokens. */
  readonly mostStrangers?: number;
}

// Longer than Go clients keep idle connections (90 s), because a server that closes first loses requests.
const KEEP_ALIVE_MS = 120_000;
// Shorter than the idle timeout of common load balancers.
const KEEP_ALIVE_DELAY_MS = 30_000;
const MAX_HEADER_BYTES = 2 ** 20;
const HANDSHAKE_MS = 10_000;

/** Returns the time limits of a server. `requestTimeoutMs`: for a whole request; 0 for no limit. */
export function timeouts(requestTimeoutMs: number | undefined): ServerOptions {
  return {
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node.js counts unused connections as requests without headers, and sets no limit if `requestTimeout` is 0.
    headersTimeout: KEEP_ALIVE_MS,
    ...(requestTimeoutMs === undefined ? {} : { requestTimeout: requestTimeoutMs }),
  };
}

/** An HTTPS server whose certificate and whose authority of client certificates change while it runs. */
export class CertifiedServer {
  readonly #server: Server;
  readonly #options: CertifiedServerOptions;
  readonly #sockets = new Set<Socket>();
  /** Connections during the TLS handshake, by peer. */
  readonly #handshaking = new Map<string, Socket>();
  #clientAuthority: string | undefined;
  /** Connections whose client certificate was verified against a replaced CA. */
  readonly #stale = new WeakSet<Duplex>();

  constructor(tls: TlsMaterial, options: CertifiedServerOptions) {
    this.#options = options;
    this.#clientAuthority = tls.clientAuthority;
    this.#server = createServer({
      ...tlsOptions(tls),
      handshakeTimeout: HANDSHAKE_MS,
      // The URL of an exec holds the whole command. The limit is that of a kubelet (net/http).
      maxHeaderSize: MAX_HEADER_BYTES,
      ...timeouts(options.requestTimeoutMs),
      // Detects a vanished host, so that a followed log does not stay open forever.
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
    });
    // Limited by their size: a header beyond a limit of their number would be lost in silence.
    this.#server.maxHeadersCount = 0;
    const strangers = options.mostStrangers === undefined ? undefined : new Strangers(options.mostStrangers);
    this.#server.on("connection", (socket: Socket) => {
      strangers?.add(socket);
      const peer = peerOf(socket);
      this.#handshaking.set(peer, socket);
      socket.once("close", () => this.#handshaking.delete(peer));
    });
    this.#server.on("secureConnection", (socket: TLSSocket) => {
      if (socket.authorized) strangers?.verified(socket);
      this.#handshaking.delete(peerOf(socket));
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("request", (request, response) => {
      if (this.#stale.has(request.socket)) request.socket.destroy();
      else options.onRequest(request, response);
    });
    this.#server.on("upgrade", (request, socket, head) => {
      socket.on("error", () => {});
      if (this.#stale.has(socket)) socket.destroy();
      else options.onUpgrade(request, socket, head);
    });
  }

  /** Reports whether client certificates are verified. */
  get takesCertificates(): boolean {
    return this.#clientAuthority !== undefined;
  }

  /** Rejects when the port is not available. */
  async listen(host: string, port: number): Promise<number> {
    // A callback would stay registered when the port is taken, and the caller tries many ports.
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    this.#server.on("error", this.#options.onError);
    const address = this.#server.address();
    return isInetAddress(address) ? address.port : port;
  }

  /** Serves new connections with `tls`. Ends those of clients that another authority verified. Throws when `tls` is unusable. */
  renew(tls: TlsMaterial): void {
    this.#server.setSecureContext(tlsOptions(tls));
    // API servers do not repeat writes on a connection that is cut.
    if (tls.clientAuthority === this.#clientAuthority) return;
    this.#clientAuthority = tls.clientAuthority;
    for (const socket of this.#sockets) this.#stale.add(socket);
    // Handshakes in progress would verify against the old CA.
    this.#cutHandshakes();
    this.#server.closeIdleConnections();
  }

  /** Stops listening; open connections go on. Resolves when the last one is closed. */
  stopListening(): Promise<void> {
    this.#cutHandshakes();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    return closed;
  }

  /** Closes every connection except upgraded streams, which end by themselves. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    this.#cutHandshakes();
    await closed;
  }

  #cutHandshakes(): void {
    for (const socket of this.#handshaking.values()) socket.destroy();
  }
}

function tlsOptions({ certificate: { cert, key }, clientAuthority }: TlsMaterial) {
  return {
    cert,
    key,
    // Requested but not required, since other clients have a token.
    requestCert: true,
    rejectUnauthorized: false,
    // An empty list, because an absent one means Node.js' bundled public CAs.
    ca: clientAuthority ?? [],
    minVersion: "TLSv1.2",
    // A resumed session would carry a certificate that was verified against an older CA.
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function isInetAddress(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}
