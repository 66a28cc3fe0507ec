import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { MemberMetrics } from "./members.ts";
import { WorkqueueMetrics } from "./workqueue.ts";

// From one cache read to the deadline of a request.
const REQUEST_BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
// The API server gives up on a call after 5 s, and every pod waits for it.
const ADMISSION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5];

const LAG_PRECISION_MS = 100;

/**
 * What one process measures of itself, in Prometheus' form. Labels are clusters, resources and words of Legation's own,
 * never pods or namespaces, so that the number of series depends on the members alone.
 */
export class Metrics {
  readonly registry: Registry = new Registry();
  readonly queues: WorkqueueMetrics = new WorkqueueMetrics(this.registry);
  readonly members: MemberMetrics = new MemberMetrics(this.registry);
  readonly #latency: Histogram;
  readonly #requests: Counter;
  readonly #watches: Counter;
  readonly #watchEvents: Counter;
  readonly #watchBytes: Counter;
  readonly #podEvents: Counter;
  readonly #admissions: Histogram;
  readonly #certificates: Gauge;
  readonly #leading: Gauge;

  constructor() {
    const registers = [this.registry];
    // Its clock for the lag of the event loop: at the usual 10 ms, half of what an idle process costs.
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: LAG_PRECISION_MS });
    // Apart from the counter below: with all its labels a histogram would have thousands of series for each member.
    this.#latency = new Histogram({
      name: "legation_api_request_duration_seconds",
      help: "How long requests to API servers took, retries included",
      labelNames: ["cluster", "verb"],
      buckets: REQUEST_BUCKETS,
      registers,
    });
    this.#requests = new Counter({
      name: "legation_api_requests_total",
      help: "Requests to API servers, watches not among them; code is the HTTP status or why there was none",
      labelNames: ["cluster", "verb", "resource", "code"],
      registers,
    });
    this.#watches = new Counter({
      name: "legation_watches_opened_total",
      help: "Watches that were opened: each ends by itself within six minutes, so more than that are interruptions",
      labelNames: ["cluster", "resource"],
      registers,
    });
    this.#watchEvents = new Counter({
      name: "legation_watch_events_total",
      help: "Events that watches brought, bookmarks among them",
      labelNames: ["cluster", "resource"],
      registers,
    });
    this.#watchBytes = new Counter({
      name: "legation_watch_bytes_total",
      help: "Size of the events that watches brought",
      labelNames: ["cluster", "resource"],
      registers,
    });
    this.#podEvents = new Counter({
      name: "legation_pod_events_total",
      help: "Events of delegates by what became of them on their proxies",
      labelNames: ["outcome"],
      registers,
    });
    this.#admissions = new Histogram({
      name: "legation_admission_duration_seconds",
      help: "Admission reviews by path and verdict, as the webhook sees them",
      labelNames: ["path", "verdict"],
      buckets: ADMISSION_BUCKETS,
      registers,
    });
    this.#certificates = new Gauge({
      name: "legation_certificate_expiration_timestamp_seconds",
      help: "When a serving certificate of this process ends, in seconds since the epoch",
      labelNames: ["certificate"],
      registers,
    });
    this.#leading = new Gauge({ name: "legation_leader", help: "1 while this process leads", registers });
  }

  observeRequest(cluster: string, verb: string, resource: string, code: string, seconds: number): void {
    this.#latency.observe({ cluster, verb }, seconds);
    this.#requests.inc({ cluster, verb, resource, code });
  }

  countWatch(cluster: string, resource: string): void {
    this.#watches.inc({ cluster, resource });
  }

  countWatchEvents(cluster: string, resource: string, events: number, bytes: number): void {
    this.#watchEvents.inc({ cluster, resource }, events);
    this.#watchBytes.inc({ cluster, resource }, bytes);
  }

  countPodEvent(outcome: string): void {
    this.#podEvents.inc({ outcome });
  }

  observeAdmission(path: string, verdict: string, seconds: number): void {
    this.#admissions.observe({ path, verdict }, seconds);
  }

  /** When a serving certificate ends, epoch ms; one that cannot be read has ended. */
  setCertificateExpiry(certificate: "webhook" | "kubelet", expiresAt: number | undefined): void {
    this.#certificates.set({ certificate }, (expiresAt ?? 0) / 1000);
  }

  setLeading(leading: boolean): void {
    this.#leading.set(leading ? 1 : 0);
  }
}
