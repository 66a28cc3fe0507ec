import { createServer, connect as openSocket, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** The proxy's treatment of bytes. */
export type FaultMode =
  | { readonly kind: "forward" }
  | { readonly kind: "cut" }
  | { readonly kind: "blackhole" }
  | { readonly kind: "slow"; readonly ms: number }
  | { readonly kind: "deaf"; readonly direction: "answers" | "requests" };

/** An address and a port. */
export interface Upstream {
  readonly host: string;
  readonly port: number;
}

/** Port on loopback, or a function that returns the upstream for each connection: undefined refuses the connection. */
export type UpstreamPort = number | (() => Promise<number | Upstream | undefined>);

type Direction = "answers" | "requests";

/** A client connection, and its connection to the API server. */
interface Link {
  readonly sockets: readonly [Socket, Socket];
  /** Bytes were swallowed: the TLS stream cannot go on after healing. */
  damaged: boolean;
}

/** TCP proxy whose faults are switched at will. */
export class FaultProxy {
  readonly port: number;
  readonly #host: string;
  readonly #upstreamPort: UpstreamPort;
  readonly #links = new Set<Link>();
  #mode: FaultMode = { kind: "forward" };
  #server: Server | undefined;

  /** Listens on `host`, an address of this machine, and forwards to a port on loopback. */
  constructor(port: number, upstreamPort: UpstreamPort, host = "127.0.0.1") {
    this.port = port;
    this.#host = host;
    this.#upstreamPort = upstreamPort;
  }

  async listen(): Promise<void> {
    if (this.#server !== undefined) return;
    // Half-open: an end of stream is passed on like bytes, or a swallowed direction would still be noticed.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => void this.#accept(client));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: this.#host, port: this.port }, resolve);
    });
    this.#server = server;
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#resetLinks(() => true);
    if (server !== undefined) await new Promise((resolve) => server.close(resolve));
  }

  async set(mode: FaultMode): Promise<void> {
    this.#mode = mode;
    if (mode.kind === "cut") {
      await this.close();
      return;
    }
    if (mode.kind === "forward") this.#resetLinks((link) => link.damaged);
    await this.listen();
  }

  /** Resets all connections; the mode stays. */
  reset(): void {
    this.#resetLinks(() => true);
  }

  #resetLinks(which: (link: Link) => boolean): void {
    for (const link of [...this.#links].filter(which)) for (const socket of link.sockets) socket.resetAndDestroy();
  }

  async #accept(client: Socket): Promise<void> {
    client.on("error", () => {});
    const upstream = typeof this.#upstreamPort === "number" ? this.#upstreamPort : await this.#upstreamPort();
    if (upstream === undefined || client.destroyed || this.#server === undefined) {
      client.resetAndDestroy();
      return;
    }
    const { host, port } = typeof upstream === "number" ? { host: "127.0.0.1", port: upstream } : upstream;
    const server = openSocket({ host, port, allowHalfOpen: true, noDelay: true });
    const link: Link = { sockets: [client, server], damaged: false };
    this.#links.add(link);
    this.#pump(link, "requests", client, server);
    this.#pump(link, "answers", server, client);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      // The reset itself is what the other side must see.
      socket.on("error", () => other.resetAndDestroy());
      socket.on("close", () => {
        this.#links.delete(link);
        other.destroy();
      });
    }
  }

  #swallows(direction: Direction): boolean {
    return this.#mode.kind === "blackhole" || (this.#mode.kind === "deaf" && this.#mode.direction === direction);
  }

  #pump(link: Link, direction: Direction, from: Socket, to: Socket): void {
    // While chunks wait, later ones queue behind them, so that bytes never change their order.
    let waiting = 0;
    let tail = Promise.resolve();
    const deliver = (act: () => void): void => {
      const due = performance.now() + (this.#mode.kind === "slow" ? this.#mode.ms : 0);
      if (waiting === 0 && this.#mode.kind !== "slow") {
        act();
        return;
      }
      waiting += 1;
      tail = tail.then(async () => {
        const left = due - performance.now();
        if (left > 0) await sleep(left, undefined, { ref: false });
        waiting -= 1;
        act();
      });
    };
    const swallow = (): boolean => {
      if (!this.#swallows(direction)) return false;
      link.damaged = true;
      return true;
    };
    from.on("data", (chunk: Buffer) => {
      if (swallow()) return;
      deliver(() => {
        if (swallow() || to.destroyed || to.write(chunk)) return;
        from.pause();
        to.once("drain", () => from.resume());
      });
    });
    from.on("end", () => {
      if (swallow()) return;
      deliver(() => {
        if (!swallow() && !to.destroyed) to.end();
      });
    });
  }
}
