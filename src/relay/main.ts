import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { GracefulShutdown } from "../serving/graceful-shutdown.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { Routes } from "./routes.ts";
import { RelayServer } from "./server.ts";

export interface RelayOptions {
  /** Address to listen on, at the ports of all relayed Services. */
  readonly address: string;
  /** How long open connections may go on after the end was asked for; ms. */
  readonly drainMs: number;
  /** A client of the host with the rights of `legation relay`. */
  readonly client: ClusterClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Carries connections of relayed Services to their pods. It keeps no state. */
export class Relay {
  readonly #options: RelayOptions;
  readonly #routes: Routes;
  readonly #server: RelayServer;
  readonly #shutdown: GracefulShutdown;
  #started = false;

  constructor(options: RelayOptions) {
    this.#options = options;
    const { client: host, address, clock, log, metrics } = options;
    this.#shutdown = new GracefulShutdown(clock);
    this.#routes = new Routes({ host, clock, log, onPorts: () => this.#server.follow() });
    this.#server = new RelayServer({
      host,
      routes: this.#routes,
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
    return this.#server.isListening ? undefined : "some ports of relayed Services are not available: see the log";
  }

  /** Resolves when every relayed Service is served. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#routes.start(signal);
    this.#started = true;
  }

  /** Takes connections until none comes any more, and waits for those that are open. */
  async close(): Promise<void> {
    await this.#shutdown.begin();
    await this.#server.close(this.#options.drainMs);
    await this.#routes.stop();
  }
}
