import type { Duplex, Readable } from "node:stream";
import type { Dial } from "../client.ts";
import type { ClusterCredentials, RequestIdentity } from "../credentials.ts";
import type { ClientLimits } from "../limits.ts";
import { ServerConnections } from "./connections.ts";
import type { RequestHandler } from "./request-handler.ts";
import type { StreamHandler } from "./stream-handler.ts";
import type { WatchStream } from "./watch-stream.ts";

/** A request, with its name in errors and metrics. */
export interface ApiRequest {
  /** Kubernetes verb. */
  readonly verb: "get" | "list" | "watch" | "create" | "update" | "patch" | "delete";
  /** Plural, with its subresource when there is one. */
  readonly plural: string;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: string;
  readonly contentType?: string;
  /** Media type of the response; default JSON. */
  readonly accept?: string;
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

/** A request in undici's form. */
interface DispatchOptions {
  readonly origin: string;
  readonly path: string;
  readonly method: ApiRequest["method"];
  readonly headers: Record<string, string | string[]>;
  readonly body: string | null;
  readonly reset: boolean;
}

/** Sends requests to one API server as they are: no limits, deadlines or retries. */
export class RequestSender {
  readonly #connections: ServerConnections;
  readonly #origin: string;
  readonly #basePath: string;
  readonly #userAgent: string;
  readonly #upgraded = new Set<Duplex>();
  #closed = false;

  constructor(options: {
    readonly credentials: ClusterCredentials;
    readonly limits: ClientLimits;
    readonly userAgent: string;
    readonly dial?: Dial | undefined;
  }) {
    const { pathname, origin } = new URL(options.credentials.server);
    this.#connections = new ServerConnections(options.credentials, options.limits, options.dial);
    this.#origin = origin;
    this.#basePath = pathname === "/" ? "" : pathname;
    this.#userAgent = options.userAgent;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Sends a request with one response. */
  send(request: ApiRequest, identity: RequestIdentity, handler: RequestHandler): void {
    try {
      this.#connections.for("requests", identity).dispatch(this.#dispatchOptions(request, identity), handler);
    } catch (cause) {
      handler.refuse(cause);
    }
  }

  /** Sends a watch request. The response goes to `stream`. */
  watch(request: ApiRequest, identity: RequestIdentity, stream: WatchStream): void {
    try {
      this.#connections.for("watches", identity).dispatch(this.#dispatchOptions(request, identity), stream);
    } catch (cause) {
      stream.cancel(cause instanceof Error ? cause.message : String(cause), cause);
    }
  }

  /** Sends an upgrade request. */
  upgrade(request: ApiRequest, identity: RequestIdentity, upgrade: Upgrade, handler: RequestHandler): void {
    const { headers, ...options } = this.#dispatchOptions(request, identity);
    const { protocol } = upgrade;
    // The stream is not JSON, and API servers reject a request that does not accept their media type.
    headers.accept = "*/*";
    try {
      this.#connections
        .for("upgrades", identity)
        .dispatch({ ...options, headers: { ...upgrade.headers, ...headers }, upgrade: protocol }, handler);
    } catch (cause) {
      handler.refuse(cause);
    }
  }

  /** Sends a request whose response is read as a stream. */
  stream(request: ApiRequest, identity: RequestIdentity, handler: StreamHandler): void {
    const { headers, ...options } = this.#dispatchOptions(request, identity);
    // Logs are plain text; errors are JSON.
    headers.accept = "*/*";
    try {
      this.#connections.for("watches", identity).dispatch({ ...options, headers }, handler);
    } catch (cause) {
      handler.end("cut", cause instanceof Error ? cause : new Error(String(cause)));
    }
  }

  /** Sends a client's request. Never on the connection of an upgrade, nor an upgrade on another one's. */
  forward(request: SentRequest, identity: RequestIdentity, handler: StreamHandler | RequestHandler): void {
    const { method, path, headers, body, upgrade } = request;
    try {
      this.#connections.for(upgrade === undefined ? "watches" : "upgrades", identity).dispatch(
        {
          origin: this.#origin,
          path: this.#basePath + path,
          method,
          headers: [...headers],
          body,
          // As in `#dispatchOptions`. After a HEAD, undici does without the connection: a body would be the next response.
          ...(method === "HEAD" || upgrade !== undefined ? {} : { reset: false }),
          ...(upgrade === undefined ? {} : { upgrade }),
        },
        handler,
      );
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause));
      if ("refuse" in handler) handler.refuse(error);
      else handler.end("cut", error);
    }
  }

  /** Registers a socket to be closed with the client. */
  keep(socket: Duplex): void {
    this.#upgraded.add(socket);
    socket.once("close", () => this.#upgraded.delete(socket));
    if (this.#closed) socket.destroy();
  }

  /** Closes every connection. Requests in flight fail. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const socket of this.#upgraded) socket.destroy();
    await this.#connections.destroy(new Error("the client was closed"));
  }

  #dispatchOptions(request: ApiRequest, identity: RequestIdentity): DispatchOptions {
    const headers: Record<string, string | string[]> = {
      ...identity.headers,
      accept: request.accept ?? "application/json",
      "user-agent": this.#userAgent,
    };
    if (identity.authorization !== undefined) headers.authorization = identity.authorization;
    if (request.body !== undefined) headers["content-type"] = request.contentType ?? "application/json";
    return {
      origin: this.#origin,
      path: this.#basePath + request.path,
      method: request.method,
      headers,
      body: request.body ?? null,
      // undici would close the connection after a DELETE with a body, which API servers handle like any other request.
      reset: false,
    };
  }
}
