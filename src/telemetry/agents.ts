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
    new Counter({
      name: "legation_agent_bytes_total",
      help: "Bytes of connections through the agent of the member, as encrypted by its API server and this process",
      labelNames: ["cluster", "direction"],
      registers: [registry],
      collect(): void {
        this.reset();
        for (const { name, receivedBytes, sentBytes } of states()) {
          this.inc({ cluster: name, direction: "received" }, receivedBytes);
          this.inc({ cluster: name, direction: "sent" }, sentBytes);
        }
      },
    });
  }

  /** Reads `states` at each scrape. Undefined while this process does not lead. */
  follow(states: (() => Iterable<AgentTraffic>) | undefined): void {
    this.#states = states;
  }
}
