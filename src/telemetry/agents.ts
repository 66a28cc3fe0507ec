import { Counter, type Registry } from "prom-client";
import { counterPerCluster, gaugePerCluster } from "./per-cluster.ts";

/** The connections of a member's agent. */
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
    gaugePerCluster({
      registry,
      name: "legation_agent_connected",
      help: "1 while the agent of the member is connected",
      states,
      read: ({ connected }) => (connected ? 1 : 0),
    });
    gaugePerCluster({
      registry,
      name: "legation_agent_streams",
      help: "Connections to the member's API server through its agent",
      states,
      read: ({ streams }) => streams,
    });
    counterPerCluster({
      registry,
      name: "legation_agent_connections_total",
      help: "How often the agent of the member has connected",
      states,
      read: ({ connections }) => connections,
    });
    gaugePerCluster({
      registry,
      name: "legation_agent_home_streams",
      help: "Connections of the member's pods to the home API through its agent",
      states,
      read: ({ homeStreams }) => homeStreams,
    });
    gaugePerCluster({
      registry,
      name: "legation_agent_certificate_expiration_timestamp_seconds",
      help: "When the certificate with which the agent of the member is connected expires",
      states,
      read: ({ certificateExpires }) => (certificateExpires === undefined ? undefined : certificateExpires / 1000),
    });
    this.#countBytes(registry, {
      name: "legation_agent_bytes_total",
      help: "Bytes of connections through the agent of the member, as encrypted by its API server and this process",
      read: ({ receivedBytes, sentBytes }) => ({ received: receivedBytes, sent: sentBytes }),
    });
    this.#countBytes(registry, {
      name: "legation_agent_home_bytes_total",
      help: "Bytes of connections of the member's pods to the home API through its agent",
      read: ({ homeReceivedBytes, homeSentBytes }) => ({ received: homeReceivedBytes, sent: homeSentBytes }),
    });
  }

  #countBytes(
    registry: Registry,
    {
      name,
      help,
      read,
    }: {
      readonly name: string;
      readonly help: string;
      readonly read: (state: AgentTraffic) => { readonly received: number; readonly sent: number };
    },
  ): void {
    const states = (): Iterable<AgentTraffic> => this.#states?.() ?? [];
    new Counter({
      name,
      help,
      labelNames: ["cluster", "direction"],
      registers: [registry],
      collect(): void {
        this.reset();
        for (const state of states()) {
          const { received, sent } = read(state);
          this.inc({ cluster: state.name, direction: "received" }, received);
          this.inc({ cluster: state.name, direction: "sent" }, sent);
        }
      },
    });
  }

  /** Reads `states` at each scrape. Undefined while this process does not lead. */
  follow(states: (() => Iterable<AgentTraffic>) | undefined): void {
    this.#states = states;
  }
}
