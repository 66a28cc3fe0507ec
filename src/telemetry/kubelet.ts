import { Counter, Gauge, Histogram, Registry } from "prom-client";

export interface RunningPods {
  readonly running: number;
  /** Containers by a kubelet's name of their state. */
  readonly containers: Readonly<Record<"running" | "exited", number>>;
}

const LABELS = ["method", "path", "server_type", "long_running"] as const;
const LONG_RUNNING: ReadonlySet<string> = new Set(["exec", "attach", "portForward"]);

/** The `/metrics` of one virtual node: its name, its pods and the requests to its API, under a kubelet's names and labels. */
export class KubeletMetrics {
  readonly registry: Registry = new Registry();
  readonly #requests: Counter<(typeof LABELS)[number]>;
  readonly #inFlight: Gauge<(typeof LABELS)[number]>;
  readonly #durations: Histogram<(typeof LABELS)[number]>;

  constructor(node: string, pods: () => RunningPods) {
    const registers = [this.registry];
    const ofRequests = { labelNames: LABELS, registers };
    this.#requests = new Counter({
      ...ofRequests,
      name: "kubelet_http_requests_total",
      help: "Number of the http requests received since the server started",
    });
    this.#inFlight = new Gauge({
      ...ofRequests,
      name: "kubelet_http_inflight_requests",
      help: "Number of the inflight http requests",
    });
    this.#durations = new Histogram({
      ...ofRequests,
      name: "kubelet_http_requests_duration_seconds",
      help: "Duration in seconds to serve http requests",
    });
    const nodeName = { name: "kubelet_node_name", help: "The node's name. The count is always 1." };
    new Gauge({ ...nodeName, labelNames: ["node"], registers }).set({ node }, 1);
    new Gauge({
      name: "kubelet_running_pods",
      help: "Number of pods that have a running pod sandbox",
      registers,
      collect(): void {
        this.set(pods().running);
      },
    });
    new Gauge({
      name: "kubelet_running_containers",
      help: "Number of containers currently running",
      labelNames: ["container_state"],
      registers,
      collect(): void {
        for (const [state, count] of Object.entries(pods().containers)) this.set({ container_state: state }, count);
      },
    });
  }

  /** Counts a request and returns how to tell its end. */
  begin(method: string, path: string): () => void {
    const labels = { method, path, server_type: "readwrite", long_running: String(LONG_RUNNING.has(path)) };
    this.#requests.inc(labels);
    this.#inFlight.inc(labels);
    const observe = this.#durations.startTimer(labels);
    return () => {
      this.#inFlight.dec(labels);
      observe();
    };
  }

  text(): Promise<string> {
    return this.registry.metrics();
  }
}
