import type { ClientMetrics } from "../kube/client.ts";
import type { Traces } from "../telemetry/traces.ts";

/** Hears of requests for traces, and passes everything on to the metrics. */
export class TracedRequests implements ClientMetrics {
  readonly #metrics: ClientMetrics;
  readonly #traces: Traces;

  constructor(metrics: ClientMetrics, traces: Traces) {
    this.#metrics = metrics;
    this.#traces = traces;
  }

  observeRequest(cluster: string, verb: string, plural: string, result: string, seconds: number): void {
    this.#metrics.observeRequest(cluster, verb, plural, result, seconds);
    this.#traces.request(cluster, verb, plural, result, seconds);
  }

  countWatch(cluster: string, plural: string): void {
    this.#metrics.countWatch(cluster, plural);
  }

  countWatchEvents(cluster: string, plural: string, events: number, bytes: number): void {
    this.#metrics.countWatchEvents(cluster, plural, events, bytes);
  }
}
