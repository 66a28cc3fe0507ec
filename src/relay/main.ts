import type { ClusterClient } from "../kube/client.ts";
import { PortForwards } from "../kube/port-forward.ts";
import type { Clock } from "../runtime/clock.ts";
import { GracefulShutdown } from "../serving/graceful-shutdown.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { connectTo } from "./connect.ts";
import { HostRelays } from "./in-member.ts";
import type { MemberRelayOptions } from "./member-relay.ts";
import { MemberRelays } from "./members.ts";
import { Routes } from "./routes.ts";
import { RelayServer, type RelayServerOptions } from "./server.ts";

export interface RelayOptions {
  /** Address to listen on, at the ports of all relayed Services. */
  readonly address: string;
  /** How long open connections may go on after the end was asked for; ms. */
  readonly drainMs: number;
  /** A client of the host with the rights of `legation relay`. Undefined: the relay runs in a member, where it needs none. */
  readonly client: ClusterClient | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Where a relay leads connections, and on which ports it takes them. */
interface Way extends Pick<RelayServerOptions, "routes" | "connect"> {
  /** Resolves when every relayed Service is known. */
  start(signal: AbortSignal): Promise<void>;
  /** Returns why no connection can be carried. */
  problem(): string | undefined;
  /** Takes no connections any more from other relays. */
  leave(): Promise<void>;
  stop(): Promise<void>;
}

/** Carries connections of relayed Services to their pods. It keeps no state. */
export class Relay {
  readonly #options: RelayOptions;
  readonly #way: Way;
  readonly #server: RelayServer;
  readonly #shutdown: GracefulShutdown;
  #started = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    const { client, address, clock, log, metrics } = options;
    this.#shutdown = new GracefulShutdown(clock);
    this.#way = client === undefined ? this.#toHost() : this.#toPods(client);
    this.#server = new RelayServer({
      routes: this.#way.routes,
      connect: this.#way.connect,
      address,
      onConnection: () => this.#shutdown.requested(),
      clock,
      log,
      metrics: metrics.relay,
    });
  }

  /** Returns why no Service may lead here. Undefined: connections are taken. */
  notReady(): string | undefined {
    if (this.#shutdown.leaving) return "it is about to end";
    if (!this.#started) return "the relayed Services are not known yet";
    const problem = this.#way.problem();
    if (problem !== undefined) return problem;
    return this.#server.isListening ? undefined : "some ports of relayed Services are not available: see the log";
  }

  /** Resolves when every relayed Service is served. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#way.start(signal);
    this.#started = true;
  }

  /** Takes connections until none comes any more, and waits for those that are open. */
  async close(): Promise<void> {
    await this.#way.leave();
    await this.#shutdown.begin();
    await this.#server.close(this.#options.drainMs);
    await this.#way.stop();
  }

  #toPods(host: ClusterClient): Way {
    const { clock, log } = this.#options;
    const routes = new Routes({
      host,
      clock,
      log,
      onPorts: () => {
        this.#server.follow();
        members.tellPorts();
      },
      onLost: (uids) => this.#server.recheck(uids),
    });
    const take: RelayServer["take"] = (...connection) => this.#server.take(...connection);
    const forwards = new PortForwards(host);
    const connect: MemberRelayOptions["connect"] = (pod, signal) => connectTo(forwards, pod, signal);
    const members = new MemberRelays({ host, connect, routes, server: { take }, clock, log });
    return {
      routes,
      connect: (pod, _, signal) => connect(pod, signal),
      start: async (signal) => {
        await routes.start(signal);
        members.start();
      },
      problem: () => undefined,
      leave: () => members.stop(),
      stop: () => routes.stop(),
    };
  }

  #toHost(): Way {
    const { clock, log } = this.#options;
    const relays = new HostRelays({ onPorts: () => this.#server.follow(), clock, log });
    return {
      routes: relays,
      connect: (pod, client, signal) => relays.connect(pod, client, signal),
      start: () => relays.listen(),
      problem: () => (relays.areConnected ? undefined : "no relay of the host is connected"),
      leave: () => Promise.resolve(),
      stop: () => relays.close(),
    };
  }
}
