import type { Container, Pod, PodSpec } from "../api/kubernetes.ts";
import { type Amounts, addAmounts, parseAmounts } from "../api/quantity.ts";

/** LimitRanger's defaults, the overhead of a RuntimeClass, or any other admission plugin, webhook or policy. */
export type MutatedBy = "LimitRange" | "RuntimeClass" | "Admission";

/** Requests of a pod that a member's admission changed. */
export interface RequestMutation {
  readonly requests: Amounts;
  /** The changed ones, by resource. */
  readonly by: Readonly<Record<string, MutatedBy>>;
}

/** Returns what kube-scheduler reserves for the pod (k8s.io/component-helpers/resource), and one of `pods`. */
export function podRequests(pod: Pod): Amounts {
  const { spec } = pod;
  if (spec === undefined) return { pods: 1 };
  const total = requestsTogether(spec);
  if (spec.resources !== undefined) Object.assign(total, podLevelRequests(spec));
  addAmounts(total, parseAmounts(spec.overhead));
  total.pods = 1;
  return total;
}

function requestsTogether({ containers = [], initContainers = [] }: PodSpec): Record<string, number> {
  const total: Record<string, number> = {};
  for (const container of containers) addAmounts(total, containerRequests(container));

  const sidecars: Record<string, number> = {};
  const initPeak: Record<string, number> = {};
  for (const container of initContainers) {
    const requests = containerRequests(container);
    if (container.restartPolicy === "Always") {
      addAmounts(total, requests);
      addAmounts(sidecars, requests);
    } else {
      const during = { ...sidecars };
      addAmounts(during, requests);
      raise(initPeak, during);
    }
  }
  raise(total, initPeak);
  return total;
}

// Resources that a pod may overcommit.
const SHARED: ReadonlySet<string> = new Set(["cpu", "memory"]);

/** Reports whether the resource has pod-level requests (k8s.io/component-helpers/resource). */
function isPodLevel(resource: string): boolean {
  return SHARED.has(resource) || resource.startsWith("hugepages-");
}

/** Follows defaultPodRequests in pkg/apis/core/v1: the containers' sum, or else the limits. */
function podLevelRequests(spec: PodSpec): Amounts {
  const { requests, limits } = spec.resources ?? {};
  const written = parseAmounts(requests);
  const limited = Object.entries(parseAmounts(limits)).filter(([name]) => isPodLevel(name));
  if (limited.length === 0) return written;
  const together = Object.entries(requestsTogether(spec)).filter(([name]) => SHARED.has(name));
  return { ...Object.fromEntries([...limited, ...together]), ...written };
}

function containerRequests(container: Container): Amounts {
  const { requests, limits } = container.resources ?? {};
  // The API server defaults a missing request to the limit; manifests read by `plan` were not defaulted.
  return { ...parseAmounts(limits), ...parseAmounts(requests) };
}

function raise(peak: Record<string, number>, amounts: Amounts): void {
  for (const name in amounts) peak[name] = Math.max(peak[name] ?? 0, amounts[name] ?? 0);
}
