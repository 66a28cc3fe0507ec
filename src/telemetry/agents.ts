import { Counter, Gauge, type Registry } from "prom-client";

/** The current state of a member's agent. */
export interface AgentState {
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
  #states: (() => Iterable<AgentState>) | undefined;

  constructor(registry: Registry) {
    const registers = [registry];
    const labelNames = ["cluster"] as const;
    const states = (): Iterable<AgentState> => this.#states?.() ?? [];
    const gauge = (name: string, help: string, read: (state: AgentState) => number): void => {
      new Gauge({
        name,
        help,
        labelNames,
        registers,
        collect(): void {
          this.reset();
          for (const state of states()) this.set({ cluster: state.name }, read(state));
        },
      });
    };
    gauge("legation_agent_connected", "1 while the agent of the member is connected", (state) =>
      state.connected ? 1 : 0,
    );
    gauge(
      "legation_agent_streams",
      "Connections to the member's API server through its agent",
      ({ streams }) => streams,
    );
    new Counter({
      name: "legation_agent_connections_total",
      help: "How often the agent of the member has connected",
      labelNames,
      registers,
      collect(): void {
        this.reset();
        for (const { name, connections } of states()) this.inc({ cluster: name }, connections);
      },
    });
    new Counter({
      name: "legation_agent_bytes_total",
      help: "Bytes of connections through the agent of the member, as encrypted by its API server and this process",
      labelNames: ["cluster", "direction"],
      registers,
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
  follow(states: (() => Iterable<AgentState>) | undefined): void {
    this.#states = states;
  }
}
