import type { PodRef } from "./pod-lookup.ts";

export type Endpoint =
  | { readonly kind: SimpleKind | "unknown" }
  | { readonly kind: "log"; readonly pod: PodRef; readonly container: string }
  | { readonly kind: "stream"; readonly pod: PodRef; readonly container?: string };

type SimpleKind = "healthz" | "pods" | "metrics" | "resource" | "cadvisor" | "probes" | "stats";

/** Names are decoded; an undecodable path is unknown. */
export function endpointOf(path: string): Endpoint {
  const segments = decoded(path);
  if (segments === undefined) return { kind: "unknown" };
  const [first, namespace, name, ...rest] = segments;
  const simple = SIMPLE.get(segments.join("/").replace(/\/$/, ""));
  if (simple !== undefined) return { kind: simple };
  if (namespace === undefined || name === undefined || segments.includes("")) return { kind: "unknown" };
  const pod = { namespace, name };
  const [one, two] = rest;
  if (first === "containerLogs" && one !== undefined && rest.length === 1) return { kind: "log", pod, container: one };
  if (first === "exec" || first === "attach") {
    if (one !== undefined && rest.length === 1) return { kind: "stream", pod, container: one };
    if (one !== undefined && two !== undefined && rest.length === 2) {
      return { kind: "stream", pod: { ...pod, uid: one }, container: two };
    }
  }
  if (first === "portForward") {
    if (rest.length === 0) return { kind: "stream", pod };
    if (one !== undefined && rest.length === 1) return { kind: "stream", pod: { ...pod, uid: one } };
  }
  return { kind: "unknown" };
}

const SIMPLE: ReadonlyMap<string, SimpleKind> = new Map([
  ["healthz", "healthz"],
  ["pods", "pods"],
  ["metrics", "metrics"],
  ["metrics/resource", "resource"],
  ["metrics/cadvisor", "cadvisor"],
  ["metrics/probes", "probes"],
  ["stats/summary", "stats"],
]);

// The second segment of a path counts only under metrics, as in a kubelet (trimURLPath of pkg/kubelet/server/server.go).
const METRIC_PATHS: ReadonlySet<string> = new Set([
  ...[...SIMPLE.keys()].map((path) => (path.startsWith("metrics/") ? path : (path.split("/")[0] ?? ""))),
  "containerLogs",
  "exec",
  "attach",
  "portForward",
]);

/** Returns the part of a path that request metrics are labelled with. Unknown paths share one label, to bound cardinality. */
export function metricPathOf(path: string): string {
  const [first = "", second] = path.split("/").slice(1);
  const label = first === "metrics" && second !== undefined && second !== "" ? `${first}/${second}` : first;
  return METRIC_PATHS.has(label) ? label : "other";
}

/** The first segment stays verbatim, since authorization depends on it. */
function decoded(path: string): string[] | undefined {
  try {
    const [first = "", ...names] = path.split("/").slice(1);
    const segments = [first, ...names.map(decodeURIComponent)];
    // Rejects a decoded name that would change the meaning of the path it becomes part of.
    return segments.some((segment) => segment.includes("/") || segment === ".." || segment === ".")
      ? undefined
      : segments;
  } catch {
    return undefined;
  }
}
