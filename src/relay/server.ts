import { createServer, type Server } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { LASTING_SOCKET } from "../runtime/https-listener.ts";
import { listenOn } from "../runtime/listening.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { RelayFailure, RelayMetrics } from "../telemetry/relay.ts";
import { Choice } from "./affinity.ts";
import { type Carried, carry, cut } from "./carry.ts";
import type { Connected } from "./connect.ts";
import type { RelayPod } from "./endpoints.ts";
import type { Route, Routes } from "./routes.ts";

export interface RelayServerOptions {
  /** Connects to a pod. `client` is the address of the client. */
  readonly connect: (pod: RelayPod, client: string, signal: AbortSignal) => Promise<Connected>;
  readonly routes: Pick<Routes, "ports" | "destinationOf">;
  /** Address to listen on. */
  readonly address: string;
  readonly onConnection: () => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RelayMetrics;
}

// Another process on the machine may have the port for a moment.
const LISTEN_AGAIN_MS = 5_000;
// The last pods that leave a Service so are deleted by then; others still take connections.
const RECHECK_MS = 5_000;
// A pod or member that does not answer must not cost the client its connection; more attempts would keep the client waiting.
const MOST_ATTEMPTS = 3;

/** Listens on a port for each port of a relayed Service, and carries each connection to a pod. */
export class RelayServer {
  readonly #options: RelayServerOptions;
  readonly #choice: Choice;
  readonly #servers = new Map<number, Server>();
  readonly #carried = new Set<Carried>();
  /** The pods whose clients have received nothing yet. */
  readonly #unanswered = new Map<Carried, RelayPod>();
  readonly #opening = new Set<Promise<unknown>>();
  /** Why connections of a Service fail, as last logged. */
  readonly #told = new Map<string, string>();
  #closing = false;

  constructor(options: RelayServerOptions) {
    this.#options = options;
    this.#choice = new Choice(options.clock);
  }

  get isListening(): boolean {
    return [...this.#options.routes.ports.keys()].every((port) => this.#servers.get(port)?.listening === true);
  }

  /** Listens on the ports of all routes, and on no others. Open connections of a route that is gone go on. */
  follow(): void {
    const { ports } = this.#options.routes;
    for (const [port, server] of this.#servers) {
      if (ports.has(port)) continue;
      this.#servers.delete(port);
      server.close();
    }
    if (this.#closing) return;
    for (const port of ports.keys()) if (!this.#servers.has(port)) this.#listen(port);
  }

  /**
   * Cuts connections to these pods that are not answered, if the pod is gone: a container runtime that connects while it takes a pod's
   * network away learns only from TCP's timeout, after two minutes, that nobody is there.
   */
  recheck(uids: readonly string[]): void {
    for (const [carried, pod] of this.#unanswered) {
      if (uids.includes(pod.uid)) this.#options.clock.after(RECHECK_MS, () => void this.#recheck(carried, pod));
    }
  }

  /** Takes no connection any more, waits for those that are open, and cuts what is left after this long. */
  async close(drainMs: number): Promise<void> {
    this.#closing = true;
    for (const server of this.#servers.values()) server.close();
    this.#servers.clear();
    const { clock, metrics } = this.#options;
    await Promise.all(this.#opening);
    const all = Promise.all([...this.#carried].map(({ closed }) => closed));
    const late = Promise.withResolvers<void>();
    const timer = clock.after(drainMs, late.resolve);
    await Promise.race([all, late.promise]);
    timer.cancel();
    for (const carried of this.#carried) {
      metrics.failed("", "Draining");
      carried.cut();
    }
    await all;
  }

  /** Carries a client's connection, which comes from the address `source`. Never rejects; resolves once it is closed. */
  async take(client: Duplex, route: Route, source: string): Promise<void> {
    client.on("error", () => {});
    this.#options.onConnection();
    const opening = this.#onClient(client, route, source);
    this.#opening.add(opening);
    const carried = await opening;
    this.#opening.delete(opening);
    await carried?.closed;
  }

  #listen(port: number): void {
    const { address, clock, log } = this.#options;
    const server = createServer({ ...LASTING_SOCKET, allowHalfOpen: true, pauseOnConnect: true }, (client) => {
      const route = this.#options.routes.ports.get(port);
      if (route === undefined) client.resetAndDestroy();
      else void this.take(client, route, client.remoteAddress ?? "");
    });
    this.#servers.set(port, server);
    const onError = (err: Error): void => log.error({ err, port }, "a relayed Service cannot be served");
    listenOn(server, { host: address, port, onError }).catch((error: Error) => {
      onError(error);
      clock.after(LISTEN_AGAIN_MS, () => {
        if (this.#servers.get(port) === server) this.#servers.delete(port);
        this.follow();
      });
    });
  }

  /** Never rejects. Resolves to the connection to a pod, or to undefined if there is none: the client is cut then. */
  async #onClient(client: Duplex, route: Route, source: string): Promise<Carried | undefined> {
    const { routes, log, metrics } = this.#options;
    const service = `${route.namespace}/${route.service}`;
    try {
      const destination = routes.destinationOf(route);
      const pods = this.#choice.order(destination, service, source).slice(0, MOST_ATTEMPTS);
      let failed: { readonly reason: RelayFailure; readonly message: string; readonly cluster: string } = {
        reason: "NoEndpoints",
        message: "no pod is ready",
        cluster: "",
      };
      for (const pod of pods) {
        const connected = await this.#connect(client, pod, source);
        if (client.destroyed) return undefined;
        if (connected.stream === undefined) {
          failed = { ...connected, cluster: pod.cluster ?? "" };
          continue;
        }
        this.#told.delete(service);
        this.#choice.taken(pod, destination.affinityMs, service, source);
        return this.#carry(client, connected.stream, pod);
      }
      metrics.failed(failed.cluster, failed.reason);
      // Once until a connection succeeds: clients try again and again.
      if (this.#told.get(service) !== failed.message) {
        log.info({ service, member: failed.cluster, reason: failed.reason }, failed.message);
        this.#told.set(service, failed.message);
      }
    } catch (error) {
      log.error({ err: error, service }, "a connection was not relayed");
    }
    cut(client);
    return undefined;
  }

  /** Never rejects. */
  async #recheck(carried: Carried, pod: RelayPod): Promise<void> {
    if (!this.#unanswered.has(carried)) return;
    const abort = new AbortController();
    void carried.closed.then(() => abort.abort());
    const connected = await this.#options.connect(pod, "", abort.signal).catch(() => undefined);
    connected?.stream?.destroy();
    const isGone = connected?.stream === undefined && connected?.isGone === true;
    if (isGone && this.#unanswered.has(carried)) carried.cut();
  }

  async #connect(client: Duplex, pod: RelayPod, source: string): Promise<Connected> {
    const abort = new AbortController();
    const gone = (): void => abort.abort();
    client.once("close", gone);
    const connected = await this.#options.connect(pod, source, abort.signal);
    client.removeListener("close", gone);
    if (client.destroyed) connected.stream?.destroy();
    return connected;
  }

  #carry(client: Duplex, stream: Duplex, pod: RelayPod): Carried {
    const { clock, log, metrics } = this.#options;
    const { cluster = "", name, namespace } = pod;
    const counted = metrics.begin(cluster);
    stream.once("error", (error) =>
      log.debug({ member: cluster, namespace, name, reason: error.message }, "a connection was cut"),
    );
    const carried = carry(client, stream, clock, {
      request: (bytes) => counted.bytes("request", bytes),
      response: (bytes) => {
        this.#unanswered.delete(carried);
        counted.bytes("response", bytes);
      },
    });
    this.#carried.add(carried);
    this.#unanswered.set(carried, pod);
    void carried.closed.then((how) => {
      this.#carried.delete(carried);
      this.#unanswered.delete(carried);
      counted.ended();
      if (how === "cut") metrics.failed(cluster, "Cut");
    });
    return carried;
  }
}
