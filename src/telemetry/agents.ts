import { Counter, type Registry } from "prom-client";
import { metricsPerCluster } from "./per-cluster.ts";

export interface AgentTraffic {
  readonly name: string;
  readonly connected: boolean;
  /** Connections to the hub so far. */
  readonly connections: number;
  /** Connections to the member's API server that are open through it. */
  readonly streams: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  /** Open connections of the member's pods to the home API. */
  readonly homeStreams: number;
  readonly homeReceivedBytes: number;
  readonly homeSentBytes: number;
  /** When the agent's certificate expires; epoch ms. Undefined while it is not connected. */
  readonly certificateExpires: number | undefined;
}

/** Metrics of members that are reached through an agent, read at each scrape. */
export class AgentMetrics {
  #states: (() => Iterable<AgentTraffic>) | undefined;

  constructor(registry: Registry) {
    const states = (): Iterable<AgentTraffic> => this.#states?.() ?? [];
    const { gauge, counter } = metricsPerCluster(registry, states);
    gauge("legation_agent_connected", "1 while the agent of the member is connected", ({ connected }) =>
      connected ? 1 : 0,
    );
    gauge(
      "legation_agent_streams",
      "Connections to the member's API server through its agent",
      ({ streams }) => streams,
    );
    counter(
      "legation_agent_connections_total",
      "How often the agent of the member has connected",
      ({ connections }) => connections,
    );
    gauge(
      "legation_agent_home_streams",
      "Connections of the member's pods to the home API through its agent",
      ({ homeStreams }) => homeStreams,
    );
    gauge(
      "legation_agent_certificate_expiration_timestamp_seconds",
      "When the newest certificate of the connected agent of the member expires",
      ({ certificateExpires }) => (certificateExpires === undefined ? undefined : certificateExpires / 1000),
    );
    const countBytes = (name: string, help: string, read: (state: AgentTraffic) => readonly [number, number]): void => {
      new Counter({
        name,
        help,
        labelNames: ["cluster", "direction"],
        registers: [registry],
        collect(): void {
          this.reset();
          for (const state of states()) {
            const [received, sent] = read(state);
            this.inc({ cluster: state.name, direction: "received" }, received);
            this.inc({ cluster: state.name, direction: "sent" }, sent);
          }
        },
      });
    };
    countBytes(
      "legation_agent_bytes_total",
      "Bytes of connections through the agent of the member, as encrypted by its API server and this process",
      ({ receivedBytes, sentBytes }) => [receivedBytes, sentBytes],
    );
    countBytes(
      "legation_agent_home_bytes_total",
      "Bytes of connections of the member's pods to the home API through its agent",
      ({ homeReceivedBytes, homeSentBytes }) => [homeReceivedBytes, homeSentBytes],
    );
  }

  /** Reads `states` at each scrape. Undefined while this process does not lead. */
  follow(states: (() => Iterable<AgentTraffic>) | undefined): void {
    this.#states = states;
  }
}
