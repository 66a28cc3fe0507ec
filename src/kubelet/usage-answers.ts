import { allStatuses } from "../pods/pod-state.ts";
import { type NodeUsage, sumOf, type Usage } from "./usage.ts";

export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
  /** Epoch ms; default: now. */
  readonly at?: number;
}

/** Renders `/metrics/resource` with the families, names and order of a kubelet (pkg/kubelet/metrics/collectors). */
export function resourceMetrics({ failed, node, pods }: NodeUsage): string {
  const containers = pods.flatMap(({ pod: { metadata }, containers: all }) =>
    all.map(({ name, startedAt, usage }) => {
      return { labels: { container: name, ...podLabels(metadata) }, startedAt, ...usage };
    }),
  );
  const whole = pods.flatMap(({ pod: { metadata }, containers: all }) => {
    const sum = sumOf(all);
    return sum === undefined ? [] : [{ labels: podLabels(metadata), ...sum }];
  });
  const nodes = node === undefined ? [] : [node];
  return [
    family(
      "container_cpu_usage_seconds_total",
      "counter",
      "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
      containers.map(cpu),
    ),
    family(
      "container_memory_working_set_bytes",
      "gauge",
      "[STABLE] Current working set of the container in bytes",
      containers.map(memory),
    ),
    family(
      "container_start_time_seconds",
      "gauge",
      "[STABLE] Start time of the container since unix epoch in seconds",
      containers.map(startTime),
    ),
    family(
      "node_cpu_usage_seconds_total",
      "counter",
      "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
      nodes.map(cpu),
    ),
    family(
      "node_memory_working_set_bytes",
      "gauge",
      "[STABLE] Current working set of the node in bytes",
      nodes.map(memory),
    ),
    family(
      "pod_cpu_usage_seconds_total",
      "counter",
      "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
      whole.map(cpu),
    ),
    family(
      "pod_memory_working_set_bytes",
      "gauge",
      "[STABLE] Current working set of the pod in bytes",
      whole.map(memory),
    ),
    family(
      "resource_scrape_error",
      "gauge",
      "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
      [{ value: failed ? 1 : 0 }],
    ),
  ].join("");
}

/** Renders `/metrics/cadvisor`: the families of cAdvisor's that the member's metrics API knows. */
export function cadvisorMetrics({ failed, pods }: NodeUsage): string {
  const containers = pods.flatMap(({ pod, containers: all }) =>
    all.map(({ name, startedAt, usage }) => {
      const { image = "" } = allStatuses(pod).find((container) => container.name === name) ?? {};
      return { labels: { container: name, image, ...podLabels(pod.metadata) }, startedAt, ...usage };
    }),
  );
  return [
    family(
      "container_cpu_usage_seconds_total",
      "counter",
      "Cumulative cpu time consumed in seconds.",
      containers.map(({ labels, ...usage }) => cpu({ ...usage, labels: { cpu: "total", ...labels } })),
    ),
    family("container_memory_working_set_bytes", "gauge", "Current working set in bytes.", containers.map(memory)),
    family(
      "container_start_time_seconds",
      "gauge",
      "Start time of the container since unix epoch in seconds.",
      containers.map(startTime),
    ),
    family("container_scrape_error", "gauge", "1 if there was an error while getting container metrics, 0 otherwise", [
      { value: failed ? 1 : 0 },
    ]),
  ].join("");
}

/** `/metrics/probes`: a comment, since the member's kubelets run the probes and count them. */
export const PROBE_METRICS = "# The kubelets of the member count probes.\n";

/** Renders `/stats/summary`: the known parts of a kubelet's Summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1). */
export function statsSummary(nodeName: string, { node, pods }: NodeUsage): object {
  return {
    node: { nodeName, ...(node === undefined ? {} : stats(node)) },
    pods: pods.map(({ pod: { metadata, status }, containers }) => {
      const sum = sumOf(containers);
      return {
        podRef: { name: metadata?.name, namespace: metadata?.namespace, uid: metadata?.uid },
        ...(status?.startTime === undefined ? {} : { startTime: status.startTime }),
        containers: containers.map(({ name, startedAt, usage }) => ({
          name,
          startTime: timeOf(startedAt),
          ...stats(usage),
        })),
        ...(sum === undefined ? {} : stats(sum)),
      };
    }),
  };
}

function stats({ at, cores, coreSeconds, memoryBytes }: Usage): object {
  const time = timeOf(at);
  return {
    cpu: { time, usageNanoCores: Math.round(cores * 1e9), usageCoreNanoSeconds: Math.round(coreSeconds * 1e9) },
    memory: { time, workingSetBytes: Math.round(memoryBytes) },
  };
}

function timeOf(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

function podLabels(metadata: NodeUsage["pods"][number]["pod"]["metadata"]): Record<string, string> {
  return { namespace: metadata?.namespace ?? "", pod: metadata?.name ?? "" };
}

function cpu({ coreSeconds: value, at, labels = {} }: Usage & Pick<Sample, "labels">): Sample {
  return { labels, value, at };
}

function startTime({ labels, startedAt }: Required<Pick<Sample, "labels">> & { readonly startedAt: number }): Sample {
  return { labels, value: startedAt / 1000 };
}

function memory({ memoryBytes, at, labels = {} }: Usage & Pick<Sample, "labels">): Sample {
  return { labels, value: Math.round(memoryBytes), at };
}

/** A family without samples is omitted, as Prometheus' libraries do. */
function family(name: string, type: "counter" | "gauge", help: string, samples: readonly Sample[]): string {
  if (samples.length === 0) return "";
  const lines = samples.map(({ labels = {}, value, at }) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
    const written = pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
    return `${written} ${value}${at === undefined ? "" : ` ${at}`}\n`;
  });
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

/** Escapes a label value, so that a value with quotes cannot forge samples of other pods. */
function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
