import { Counter, Gauge, type Registry } from "prom-client";

/** The reasons for which a relayed connection is cut. */
export type RelayFailure = "NoEndpoints" | "Unreachable" | "Refused" | "Cut" | "Draining";

/** Metrics of relayed connections. Never labelled by Service, to bound cardinality; no cluster is the host. */
export class RelayMetrics {
  readonly #connections: Counter<"cluster">;
  readonly #open: Gauge<"cluster">;
  readonly #bytes: Counter<"cluster" | "direction">;
  readonly #failures: Counter<"cluster" | "reason">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#connections = new Counter({
      name: "legation_relay_connections_total",
      help: "Connections that were carried to a pod; no cluster is the host",
      labelNames: ["cluster"],
      registers,
    });
    this.#open = new Gauge({
      name: "legation_relay_open_connections",
      help: "Connections that are being carried to a pod now",
      labelNames: ["cluster"],
      registers,
    });
    this.#bytes = new Counter({
      name: "legation_relay_bytes_total",
      help: "Bytes that were carried; direction is request, to the pod, or response",
      labelNames: ["cluster", "direction"],
      registers,
    });
    this.#failures = new Counter({
      name: "legation_relay_failures_total",
      help: "Connections that were cut, by reason; no cluster where none was chosen",
      labelNames: ["cluster", "reason"],
      registers,
    });
  }

  /** Counts a connection that is carried, and returns how to count its bytes and its end. */
  begin(cluster: string): {
    readonly bytes: (direction: "request" | "response", count: number) => void;
    readonly ended: () => void;
  } {
    this.#connections.inc({ cluster });
    this.#open.inc({ cluster });
    return {
      bytes: (direction, count) => this.#bytes.inc({ cluster, direction }, count),
      ended: () => this.#open.dec({ cluster }),
    };
  }

  failed(cluster: string, reason: RelayFailure): void {
    this.#failures.inc({ cluster, reason });
  }
}
