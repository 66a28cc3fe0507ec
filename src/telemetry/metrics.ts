import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

// From one cache read to the deadline of a request.
const REQUEST_BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** What one process measures of itself, in Prometheus' form. */
export class Metrics {
  readonly registry: Registry = new Registry();
  readonly #requests: Histogram;
  readonly #reconciles: Histogram;
  readonly #podEvents: Counter;
  readonly #leading: Gauge;

  constructor() {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    this.#requests = new Histogram({
      name: "legation_api_request_duration_seconds",
      help: "Requests to API servers, retries included; code is the HTTP status or why there was none",
      labelNames: ["cluster", "verb", "resource", "code"],
      buckets: REQUEST_BUCKETS,
      registers,
    });
    this.#reconciles = new Histogram({
      name: "legation_reconcile_duration_seconds",
      help: "Reconciles by controller and outcome",
      labelNames: ["controller", "outcome"],
      buckets: REQUEST_BUCKETS,
      registers,
    });
    this.#podEvents = new Counter({
      name: "legation_pod_events_total",
      help: "Events of delegates by what became of them on their proxies",
      labelNames: ["outcome"],
      registers,
    });
    this.#leading = new Gauge({ name: "legation_leader", help: "1 while this process leads", registers });
  }

  observeRequest(cluster: string, verb: string, resource: string, code: string, seconds: number): void {
    this.#requests.observe({ cluster, verb, resource, code }, seconds);
  }

  observeReconcile(controller: string, outcome: string, seconds: number): void {
    this.#reconciles.observe({ controller, outcome }, seconds);
  }

  countPodEvent(outcome: string): void {
    this.#podEvents.inc({ outcome });
  }

  setLeading(leading: boolean): void {
    this.#leading.set(leading ? 1 : 0);
  }
}
