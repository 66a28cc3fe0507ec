import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import { partsOf } from "../api-server/answer-parts.ts";
import { ApiServer } from "../api-server/api-server.ts";
import { Refusal, type ServedResource } from "../api-server/refusal.ts";
import { answerTo, type RestRequest, routeOf, selectionIn } from "../api-server/routes.ts";
import { typeOf } from "../api-server/strategies.ts";
import type { WatchedEvent } from "../api-server/watch.ts";
import { World } from "./world.ts";

/** A request as a fault sees it. */
export interface FaultRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly kind: "list" | "watch" | "read" | "write";
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** Answers a request instead of the server; returning false leaves it to the server. */
export type Fault = (request: FaultRequest, response: ServerResponse) => boolean | undefined;

/** TLS material of a fault server with HTTPS. */
export interface TlsMaterial {
  readonly key: string;
  readonly cert: string;
  /** Authority whose client certificates are demanded. */
  readonly ca?: string;
}

/** The API server in memory over HTTP, with queued faults. */
export class FaultServer {
  readonly api: ApiServer;
  readonly world: World;
  /** Every request, in order of arrival, unless the server forgets them. */
  readonly requests: FaultRequest[] = [];
  /** Faults, each used by the first request that it does not refuse. */
  readonly faults: Fault[] = [];
  /** Asked first for every request. */
  always: Fault | undefined;
  /** Called after the server has answered a request that is no watch, and refused nothing. */
  onAnswer: ((request: FaultRequest, answer: object | string) => void) | undefined;
  /** Bytes that watches have been sent. */
  watchedBytes = 0;
  readonly sockets: Set<Socket> = new Set();
  /** Sockets opened since the start. */
  connections = 0;
  readonly #server: Server;
  readonly #watches = new Set<ServerResponse>();
  readonly #forgets: boolean;
  #port = 0;
  readonly #scheme: "http" | "https";

  private constructor(tls: TlsMaterial | undefined, api: ApiServer, forgets: boolean) {
    this.api = api;
    this.#forgets = forgets;
    this.world = new World(api);
    const handler = (request: IncomingMessage, response: ServerResponse): void => void this.#handle(request, response);
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server =
      tls === undefined
        ? createServer(handler)
        : createTlsServer(
            { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined },
            handler,
          );
    // Clients keep their connections between probes, as with a real API server.
    this.#server.keepAliveTimeout = 120_000;
    this.#server.on("connection", (socket: Socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
  }

  /** `forgets`: a server that runs for long does not keep its requests. */
  static async start(
    options: { tls?: TlsMaterial; port?: number; api?: ApiServer; forgets?: boolean } = {},
  ): Promise<FaultServer> {
    const server = new FaultServer(options.tls, options.api ?? untimed(), options.forgets === true);
    await server.listen(options.port ?? 0);
    return server;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.#port}`;
  }

  get openWatches(): number {
    return this.#watches.size;
  }

  /** Listens again after `stop`, by default on the same port. */
  async listen(port: number = this.#port): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", resolve);
    });
    const address = this.#server.address();
    if (typeof address === "object" && address !== null) this.#port = address.port;
  }

  /** Closes the port and cuts every connection. */
  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.cutConnections();
    });
  }

  cutConnections(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Writes raw text on every open watch. */
  writeToWatches(text: string | Buffer): void {
    for (const response of this.#watches) {
      if (!response.writableEnded) response.write(text);
    }
  }

  /** Ends every open watch in good order. */
  endWatches(): void {
    for (const response of this.#watches) response.end();
  }

  /** Sends a bookmark on every open watch that allows them. */
  bookmark(): void {
    this.api.bookmark();
  }

  async #handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk);
    const url = new URL(message.url ?? "/", this.url);
    const method = message.method ?? "GET";
    const readKind = url.searchParams.get("watch") === "true" ? "watch" : isCollection(url.pathname) ? "list" : "read";
    const request: FaultRequest = {
      method,
      path: url.pathname,
      query: url.searchParams,
      kind: method === "GET" ? readKind : "write",
      headers: message.headers,
      body: Buffer.concat(chunks).toString("utf8"),
    };
    if (!this.#forgets) this.requests.push(request);
    if (this.always?.(request, response) === true) return;
    for (const fault of this.faults) {
      if (fault(request, response) === false) continue;
      this.faults.splice(this.faults.indexOf(fault), 1);
      return;
    }
    this.#serve(request, response);
  }

  #serve(request: FaultRequest, response: ServerResponse): void {
    try {
      if (request.kind === "watch") {
        this.#watch(request, response);
        return;
      }
      const answer = answerTo(this.api, restOf(request), userOf(request));
      answerJson(response, request.method === "POST" ? 201 : 200, answer);
      this.onAnswer?.(request, answer);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      answerJson(response, error.status, error.toStatus());
    }
  }

  /** Continue tokens given out so far have expired. */
  expireContinueTokens(): void {
    this.api.expirePages();
  }

  #watch({ path, query, headers }: FaultRequest, response: ServerResponse): void {
    const { resource, namespace } = routeOf(this.api, path);
    const selection = { ...selectionIn(query, namespace), resourceVersion: query.get("resourceVersion") ?? "" };
    const watch = this.api.watch(resource, selection);
    const allowsBookmarks = query.get("allowWatchBookmarks") === "true";
    const metadataOnly = headers.accept?.includes("as=PartialObjectMetadata") === true;
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    this.#watches.add(response);
    const timer = setTimeout(() => response.end(), Number(query.get("timeoutSeconds") ?? 3600) * 1000);
    const over = new AbortController();
    response.on("close", () => {
      clearTimeout(timer);
      over.abort();
      watch.close();
      this.#watches.delete(response);
    });
    const sendAll = async (): Promise<void> => {
      while (!over.signal.aborted && !watch.isOver) {
        for (let event = watch.next(); event !== undefined; event = watch.next()) {
          if (response.writableEnded || (event.type === "BOOKMARK" && !allowsBookmarks)) continue;
          const text = lineOf(resource, event, metadataOnly);
          this.watchedBytes += text.length;
          response.write(text);
        }
        await watch.changed(over.signal);
      }
      response.end();
    };
    void sendAll();
  }
}

/** Returns a server whose objects do not tell its clock, which is not that of its clients. */
function untimed(): ApiServer {
  const api = new ApiServer("west");
  api.notesManagers = false;
  return api;
}

function isCollection(path: string): boolean {
  return /\/(pods|events|nodes|configmaps|notes)$/.test(path);
}

function lineOf(resource: ServedResource, event: WatchedEvent, metadataOnly: boolean): string {
  if (event.type !== "BOOKMARK") return line(event.type, partsOf(event.object, { metadataOnly }));
  return line("BOOKMARK", { ...typeOf(resource), metadata: { resourceVersion: event.resourceVersion } });
}

function restOf({ method, path, query, body, headers }: FaultRequest): RestRequest {
  return {
    method,
    path: `${path}?${query}`,
    ...(body === "" ? {} : { body: JSON.parse(body) }),
    contentType: headers["content-type"],
    accept: headers.accept,
  };
}

/** The field manager of a client that names none is its program. */
function userOf({ headers }: FaultRequest): string {
  return headers["user-agent"]?.split("/")[0] ?? "";
}

/** Formats a line of a watch. */
export function line(type: string, object: object): string {
  return `${JSON.stringify({ type, object })}\n`;
}

/** Answers with a JSON body. */
export function answerJson(
  response: ServerResponse,
  status: number,
  body: object | string,
  headers: Record<string, string> = {},
): void {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(text);
}

/** Answers with a Status object, as API servers do for errors. */
export function answerStatus(
  response: ServerResponse,
  code: number,
  reason: string,
  message: string,
  headers: Record<string, string> = {},
): void {
  answerJson(response, code, { kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code }, headers);
}
