import type { Container, Pod, PodSpec } from "../api/kubernetes.ts";
import { type Amounts, addAmounts, parseAmounts } from "../api/quantity.ts";

/**
 * What a scheduler reserves for the pod: the greater of the regular containers together and each init container in
 * its turn, restartable init containers (sidecars) counted from their start on, pod-level requests where given, and
 * one `pods`. The rule is kube-scheduler's (k8s.io/component-helpers/resource).
 */
export function podRequests(pod: Pod): Amounts {
  const { spec } = pod;
  if (spec === undefined) return { pods: 1 };
  const total = requestsTogether(spec);
  if (spec.resources !== undefined) Object.assign(total, podLevelRequests(spec));
  addAmounts(total, parseAmounts(spec.overhead));
  total.pods = 1;
  return total;
}

/** What the pod's containers request, at most, at one time. */
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

// Of these a pod may request less than its limit.
const SHARED: ReadonlySet<string> = new Set(["cpu", "memory"]);

/** True for what can be requested and limited for a pod as a whole (k8s.io/component-helpers/resource). */
export function isPodLevel(resource: string): boolean {
  return SHARED.has(resource) || resource.startsWith("hugepages-");
}

/**
 * What is requested for the pod as a whole, as it is defaulted where limits are written for it: what its containers request
 * together, or else these limits (defaultPodRequests in pkg/apis/core/v1).
 */
export function podLevelRequests(spec: PodSpec): Amounts {
  const { requests, limits } = spec.resources ?? {};
  const written = parseAmounts(requests);
  const limited = Object.entries(parseAmounts(limits)).filter(([name]) => isPodLevel(name));
  if (limited.length === 0) return written;
  const together = Object.entries(requestsTogether(spec)).filter(([name]) => SHARED.has(name));
  return { ...Object.fromEntries([...limited, ...together]), ...written };
}

/** What one container requests, as it is defaulted. */
export function containerRequests(container: Container): Amounts {
  const { requests, limits } = container.resources ?? {};
  // Defaulting sets a missing request to the limit; proxies have passed it, manifests for `plan` have not.
  return { ...parseAmounts(limits), ...parseAmounts(requests) };
}

function raise(peak: Record<string, number>, amounts: Amounts): void {
  for (const name in amounts) peak[name] = Math.max(peak[name] ?? 0, amounts[name] ?? 0);
}
