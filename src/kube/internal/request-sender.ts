import type { Duplex, Readable } from "node:stream";
import type { Dispatcher } from "undici";
import type { RequestIdentity } from "../credentials.ts";
import { type ConnectionsOptions, type ConnectionUse, ServerConnections } from "./connections.ts";

/** A request, with its name in errors and metrics. */
export interface ApiRequest {
  readonly verb: "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";
  /** Plural, with its subresource when there is one. */
  readonly plural: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: string | undefined;
  readonly contentType?: string | undefined;
  /** Media type of the response; default JSON. */
  readonly accept?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  /** `timeoutMs` limits each silence of the server, not the whole response. */
  readonly mayGoOn?: boolean | undefined;
  readonly outOfTurn?: boolean | undefined;
}

/** The protocol that a request asks for, and its headers. */
export interface Upgrade {
  readonly protocol: string;
  readonly headers: Readonly<Record<string, string[]>>;
}

/** A client's request, with the headers that are sent. */
export interface SentRequest {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Readable | null;
  /** Value of the Upgrade header. */
  readonly upgrade?: string;
}

export interface ExchangeHandler extends Dispatcher.DispatchHandler {
  /** Ends an exchange that could not begin. */
  refuse(cause: Error): void;
}

/** Sends requests to one API server as they are: no limits, deadlines or retries. */
export class RequestSender {
  readonly #connections: ServerConnections;
  readonly #isShared: boolean;
  readonly #origin: string;
  readonly #basePath: string;
  readonly #userAgent: string;
  readonly #upgraded = new Set<Duplex>();
  #closed = false;

  /** `shared`: connections of other senders to the same API server, which are closed by themselves. */
  constructor(options: ConnectionsOptions, userAgent: string, shared?: ServerConnections) {
    const { pathname, origin } = new URL(options.credentials.server);
    this.#connections = shared ?? new ServerConnections(options);
    this.#isShared = shared !== undefined;
    this.#origin = origin;
    this.#basePath = pathname === "/" ? "" : pathname;
    this.#userAgent = userAgent;
  }

  get closed(): boolean {
    return this.#closed;
  }

  send(
    use: ConnectionUse,
    request: ApiRequest,
    identity: RequestIdentity,
    handler: ExchangeHandler,
    upgrade?: Upgrade,
  ): void {
    const headers: Record<string, string | string[]> = {
      ...upgrade?.headers,
      ...identity.headers,
      accept: request.accept ?? "application/json",
      "user-agent": this.#userAgent,
    };
    if (identity.authorization !== undefined) headers.authorization = identity.authorization;
    if (request.body !== undefined) headers["content-type"] = request.contentType ?? "application/json";
    const { method, path, body = null } = request;
    // undici would close the connection after a DELETE with a body, which API servers handle like any other request.
    const sent = { method, path, headers, body, reset: false, upgrade: upgrade?.protocol ?? null };
    this.#dispatch(use, identity, sent, handler);
  }

  /** Sends a client's request. Never on the connection of an upgrade, nor an upgrade on another one's. */
  forward(request: SentRequest, identity: RequestIdentity, handler: ExchangeHandler): void {
    const { method, path, headers, body, upgrade = null } = request;
    const sent = { method, path, headers: [...headers], body, upgrade };
    // As in `send`. After a HEAD, undici does without the connection: a body would be the next response.
    const reset = method === "HEAD" || upgrade !== null ? {} : { reset: false };
    this.#dispatch(upgrade === null ? "watches" : "upgrades", identity, { ...sent, ...reset }, handler);
  }

  /** Registers a socket to be closed with the client. */
  keep(socket: Duplex): void {
    this.#upgraded.add(socket);
    socket.once("close", () => this.#upgraded.delete(socket));
    if (this.#closed) socket.destroy();
  }

  /** Ends with its connections, unless these are shared: then requests in flight go on, and no further one begins. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const socket of this.#upgraded) socket.destroy();
    if (!this.#isShared) await this.#connections.destroy(new Error("the client was closed"));
  }

  #dispatch(
    use: ConnectionUse,
    identity: RequestIdentity,
    request: Omit<Dispatcher.DispatchOptions, "method"> & { readonly method: string },
    handler: ExchangeHandler,
  ): void {
    try {
      // Shared connections are still open then.
      if (this.#closed) throw new Error("the client was closed");
      const target = { ...request, origin: this.#origin, path: this.#basePath + request.path };
      this.#connections.for(use, identity).dispatch(target, handler);
    } catch (cause) {
      handler.refuse(cause instanceof Error ? cause : new Error(String(cause)));
    }
  }
}
