import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { type Change, keyOf, World } from "./world.ts";

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

/**
 * A fake API server for one collection: consistent paged lists, watches, 410 after compaction, bookmarks, and queued
 * faults.
 */
export class FaultServer {
  readonly world: World = new World();
  /** Every request, in order of arrival. */
  readonly requests: FaultRequest[] = [];
  /** Faults, each used by the first request that it does not refuse. */
  readonly faults: Fault[] = [];
  /** Asked first for every request. */
  always: Fault | undefined;
  readonly sockets: Set<Socket> = new Set();
  /** Sockets opened since the start. */
  connections = 0;
  readonly #server: Server;
  readonly #watches = new Set<ServerResponse>();
  #port = 0;
  readonly #scheme: "http" | "https";
  #lists = 0;
  readonly #snapshots = new Map<string, { version: number; items: KubeObject[] }>();

  private constructor(tls: TlsMaterial | undefined) {
    const handler = (request: IncomingMessage, response: ServerResponse): void => void this.#handle(request, response);
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server =
      tls === undefined
        ? createServer(handler)
        : createTlsServer(
            { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined },
            handler,
          );
    this.#server.on("connection", (socket: Socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
  }

  static async start(options: { tls?: TlsMaterial; port?: number } = {}): Promise<FaultServer> {
    const server = new FaultServer(options.tls);
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

  bookmark(): void {
    this.writeToWatches(
      line("BOOKMARK", { kind: "Pod", apiVersion: "v1", metadata: { resourceVersion: String(this.world.version) } }),
    );
  }

  async #handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk);
    const url = new URL(message.url ?? "/", this.url);
    const method = message.method ?? "GET";
    const isCollection = /\/(pods|events|nodes)$/.test(url.pathname);
    const readKind = url.searchParams.get("watch") === "true" ? "watch" : isCollection ? "list" : "read";
    const request: FaultRequest = {
      method,
      path: url.pathname,
      query: url.searchParams,
      kind: method === "GET" ? readKind : "write",
      headers: message.headers,
      body: Buffer.concat(chunks).toString("utf8"),
    };
    this.requests.push(request);
    if (this.always?.(request, response) === true) return;
    for (const fault of this.faults) {
      if (fault(request, response) === false) continue;
      this.faults.splice(this.faults.indexOf(fault), 1);
      return;
    }
    this.#serve(request, response);
  }

  #serve(request: FaultRequest, response: ServerResponse): void {
    const { kind, path, method, body } = request;
    if (kind === "list") this.#list(request, response);
    else if (kind === "watch") this.#watch(request, response);
    else if (kind === "read") {
      const object = this.#at(path);
      if (object === undefined) answerStatus(response, 404, "NotFound", `${path} not found`);
      else answerJson(response, 200, object);
    } else if (method === "POST") {
      const object: KubeObject = JSON.parse(body);
      if (this.world.objects.has(keyOf(object))) answerStatus(response, 409, "AlreadyExists", "already exists");
      else answerJson(response, 201, this.world.put(object));
    } else if (method === "DELETE") {
      const object = this.#at(path);
      if (object === undefined) answerStatus(response, 404, "NotFound", `${path} not found`);
      else answerJson(response, 200, this.world.remove(object) ?? {});
    } else {
      const object: KubeObject = JSON.parse(body);
      const version = object.metadata?.resourceVersion ?? this.#at(path)?.metadata?.resourceVersion;
      if (version !== this.#at(path)?.metadata?.resourceVersion) {
        answerStatus(response, 409, "Conflict", "the object has been modified");
      } else if (request.query.has("dryRun")) answerJson(response, 200, object);
      else answerJson(response, 200, this.world.put(object));
    }
  }

  #at(path: string): KubeObject | undefined {
    const name = decodeURIComponent(path.split("/").at(-1) ?? "");
    const namespace = /\/namespaces\/([^/]+)\//.exec(path)?.[1] ?? "";
    return this.world.objects.get(`${namespace}/${name}`);
  }

  #list({ query }: FaultRequest, response: ServerResponse): void {
    const token = query.get("continue");
    const [id = "", offset = "0"] = token?.split("@") ?? [];
    const known = this.#snapshots.get(id);
    if (token !== null && known === undefined) {
      answerStatus(response, 410, "Expired", "The provided continue parameter is too old");
      return;
    }
    const snapshot = known ?? { version: this.world.version, items: [...this.world.objects.values()] };
    this.#lists += 1;
    const key = known === undefined ? String(this.#lists) : id;
    this.#snapshots.set(key, snapshot);
    const begin = Number(offset);
    const end = begin + Number(query.get("limit") ?? snapshot.items.length);
    answerJson(response, 200, {
      kind: "PodList",
      apiVersion: "v1",
      metadata: {
        resourceVersion: String(snapshot.version),
        ...(end < snapshot.items.length ? { continue: `${key}@${end}` } : {}),
      },
      // Items have no kind and apiVersion, as a real server's.
      items: snapshot.items.slice(begin, end).map(({ kind: _kind, apiVersion: _version, ...item }) => item),
    });
  }

  /** Continue tokens given out so far have expired. */
  expireContinueTokens(): void {
    for (const key of this.#snapshots.keys()) this.#snapshots.delete(key);
  }

  #watch({ query }: FaultRequest, response: ServerResponse): void {
    const from = Number(query.get("resourceVersion"));
    if (from < this.world.oldest) {
      answerStatus(response, 410, "Expired", `too old resource version: ${from} (${this.world.oldest})`);
      return;
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    this.#watches.add(response);
    const send = (change: Change): void => {
      if (!response.writableEnded) response.write(line(change.type, change.object));
    };
    for (const change of this.world.since(from)) send(change);
    const unsubscribe = this.world.subscribe(send);
    const timer = setTimeout(() => response.end(), Number(query.get("timeoutSeconds") ?? 3600) * 1000);
    response.on("close", () => {
      clearTimeout(timer);
      unsubscribe();
      this.#watches.delete(response);
    });
  }
}

/** Formats a line of a watch. */
export function line(type: string, object: object): string {
  return `${JSON.stringify({ type, object })}\n`;
}

/** Answers with a JSON body. */
export function answerJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
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
