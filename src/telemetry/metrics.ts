import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { AccessMetrics } from "./access.ts";
import { AgentMetrics } from "./agents.ts";
import { MemberMetrics } from "./members.ts";
import { dropCluster } from "./per-cluster.ts";
import { RelayMetrics } from "./relay.ts";
import { WorkqueueMetrics } from "./workqueue.ts";

// Seconds from a cached read up to a request's deadline.
const REQUEST_BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
// Seconds up to the webhook's timeout of 5 s.
const ADMISSION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 5];

const LAG_PRECISION_MS = 100;

/**
 * The Prometheus metrics of one process. Labels are clusters, resources and fixed words, never pods or namespaces, so that
 * cardinality depends on the number of members only.
 */
export class Metrics {
  readonly registry: Registry = new Registry();
  readonly queues: WorkqueueMetrics = new WorkqueueMetrics(this.registry);
  readonly members: MemberMetrics = new MemberMetrics(this.registry);
  readonly agents: AgentMetrics = new AgentMetrics(this.registry);
  readonly access: AccessMetrics = new AccessMetrics(this.registry);
  readonly relay: RelayMetrics = new RelayMetrics(this.registry);
  readonly #latency: Histogram;
  readonly #requests: Counter;
  readonly #watches: Counter;
  readonly #watchEvents: Counter;
  readonly #watchBytes: Counter;
  readonly #podEvents: Counter;
  readonly #admissions: Histogram;
  readonly #certificates: Gauge;
  readonly #leading: Gauge;
  readonly #shards: Gauge;

  constructor() {
    const registers = [this.registry];
    // The default precision of 10 ms for event loop lag would cost half of an idle process's CPU.
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: LAG_PRECISION_MS });
    // Fewer labels than the counter below: a member with a histogram for each verb has 150 series instead of 100.
    this.#latency = new Histogram({
      name: "legation_api_request_duration_seconds",
      help: "How long requests to API servers took, retries included",
      labelNames: ["cluster"],
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
    this.#leading = new Gauge({
      name: "legation_leader",
      help: "Shards that this process leads; of a single one: 1 while it leads",
      registers,
    });
    this.#shards = new Gauge({ name: "legation_shards", help: "Shards that all replicas together lead", registers });
  }

  forgetCluster(cluster: string): Promise<void> {
    return dropCluster(this.registry, cluster);
  }

  observeRequest(cluster: string, verb: string, resource: string, code: string, seconds: number): void {
    this.#latency.observe({ cluster }, seconds);
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

  /** Sets when a certificate of this process expires; epoch ms. An unreadable one counts as expired. */
  setCertificateExpiry(
    certificate: "webhook" | "kubelet" | "hub" | "agent" | "access",
    expiresAt: number | undefined,
  ): void {
    this.#certificates.set({ certificate }, (expiresAt ?? 0) / 1000);
  }

  setLeading(shards: number): void {
    this.#leading.set(shards);
  }

  setShards(count: number): void {
    this.#shards.set(count);
  }
}
