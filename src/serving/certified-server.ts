import { constants } from "node:crypto";
import type { IncomingMessage, ServerOptions, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Certificate } from "../certificates/issue.ts";
import { HttpsListener } from "../runtime/https-listener.ts";

export interface TlsMaterial {
  readonly certificate: Certificate;
  /** Authority of client certificates, PEM; undefined accepts no client certificates. */
  readonly clientAuthority: string | undefined;
}

export interface CertifiedServerOptions {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  readonly onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  readonly onError: (error: Error) => void;
  /** Milliseconds for a client to send a whole request; 0 for no limit. Default: Node.js'. */
  readonly requestTimeoutMs?: number;
  /** Most connections without a verified client certificate at a time. Default: no limit, where clients have tokens. */
  readonly mostStrangers?: number;
}

// Longer than Go clients keep idle connections (90 s), because a server that closes first loses requests.
const KEEP_ALIVE_MS = 120_000;
// The URL of an exec holds the whole command. The limit is that of a kubelet (net/http).
const MAX_HEADER_BYTES = 2 ** 20;

/** Returns the time limits of a server. `requestTimeoutMs`: for a whole request; 0 for no limit. */
export function timeouts(requestTimeoutMs: number | undefined): ServerOptions {
  return {
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node.js counts unused connections as requests without headers, and sets no limit if `requestTimeout` is 0.
    headersTimeout: KEEP_ALIVE_MS,
    ...(requestTimeoutMs === undefined ? {} : { requestTimeout: requestTimeoutMs }),
  };
}

/** An HTTPS server that API servers call: its authority of client certificates changes while it runs, too. */
export class CertifiedServer {
  readonly #listener: HttpsListener;
  #clientAuthority: string | undefined;
  /** Connections whose client certificate was verified against a replaced CA. */
  readonly #stale = new WeakSet<Duplex>();

  constructor(tls: TlsMaterial, { onRequest, onUpgrade, onError, ...options }: CertifiedServerOptions) {
    this.#clientAuthority = tls.clientAuthority;
    this.#listener = new HttpsListener(tlsOptions(tls), {
      limits: { maxHeaderSize: MAX_HEADER_BYTES, ...timeouts(options.requestTimeoutMs) },
      // They are limited by their size.
      maxHeadersCount: 0,
      onRequest: (request, response) => {
        if (this.#stale.has(request.socket)) request.socket.destroy();
        else onRequest(request, response);
      },
      onUpgrade: (request, socket, head) => {
        if (this.#stale.has(socket)) socket.destroy();
        else onUpgrade(request, socket, head);
      },
      onSecure: (socket) => {
        if (socket.authorized) this.#listener.verified(socket);
      },
      onError,
      mostStrangers: options.mostStrangers,
    });
  }

  get takesCertificates(): boolean {
    return this.#clientAuthority !== undefined;
  }

  listen(host: string, port: number): Promise<number> {
    return this.#listener.listen(host, port);
  }

  /** Serves new connections with `tls`. Ends those of clients that another authority verified. Throws when `tls` is unusable. */
  renew(tls: TlsMaterial): void {
    this.#listener.renew(tlsOptions(tls));
    // API servers do not repeat writes on a connection that is cut.
    if (tls.clientAuthority === this.#clientAuthority) return;
    this.#clientAuthority = tls.clientAuthority;
    for (const socket of this.#listener.sockets) this.#stale.add(socket);
    // Handshakes in progress would verify against the old CA.
    this.#listener.cutIdle();
  }

  /** Stops listening; open connections go on. Resolves when the last one is closed. */
  stopListening(): Promise<void> {
    return this.#listener.stopListening();
  }

  /** Closes every connection except upgraded streams, which end by themselves. */
  close(): Promise<void> {
    return this.#listener.close();
  }
}

function tlsOptions({ certificate: { cert, key }, clientAuthority }: TlsMaterial) {
  return {
    cert,
    key,
    // An empty list, because an absent one means Node.js' bundled public CAs.
    ca: clientAuthority ?? [],
    minVersion: "TLSv1.2",
    // A resumed session would carry a certificate that was verified against an older CA.
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const;
}
