import { Counter, Gauge, Histogram, type Registry } from "prom-client";

// Seconds from a cached read up to a slow admission webhook.
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Metrics of users' requests to members. Never labelled by user, to bound cardinality. */
export class AccessMetrics {
  readonly #requests: Counter<"cluster" | "code">;
  readonly #inFlight: Gauge<"cluster">;
  readonly #seconds: Histogram<"cluster">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#requests = new Counter({
      name: "legation_access_requests_total",
      help: "Requests of users to members; no cluster where none was found; code 101 is a stream",
      labelNames: ["cluster", "code"],
      registers,
    });
    this.#inFlight = new Gauge({
      name: "legation_access_in_flight_requests",
      help: "Requests of users to members in flight, watches and streams among them",
      labelNames: ["cluster"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "legation_access_response_seconds",
      help: "How long it took until the member's response began",
      labelNames: ["cluster"],
      buckets: BUCKETS,
      registers,
    });
  }

  /** Counts an answered request. `cluster` is empty where none was found. */
  count(cluster: string, code: number): void {
    this.#requests.inc({ cluster, code: String(code) });
  }

  /** Counts a request in flight, and returns how to tell that its response began, and its end. */
  begin(cluster: string): { readonly responded: () => void; readonly ended: () => void } {
    this.#inFlight.inc({ cluster });
    const responded = this.#seconds.startTimer({ cluster });
    return { responded: () => void responded(), ended: () => this.#inFlight.dec({ cluster }) };
  }
}
