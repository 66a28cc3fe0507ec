import type { Container, Pod } from "../api/kubernetes.ts";
import { type Amounts, addAmounts, parseAmounts } from "../api/quantity.ts";

/**
 * What a scheduler reserves for the pod: the greater of the regular containers together and each init container in
 * its turn, restartable init containers (sidecars) counted from their start on, pod-level requests where given, and
 * one `pods`. The rule is kube-scheduler's (k8s.io/component-helpers/resource).
 */
export function podRequests(pod: Pod): Amounts {
  const total: Record<string, number> = {};
  const { containers = [], initContainers = [], resources, overhead } = pod.spec ?? {};
  for (const container of containers) addAmounts(total, containerRequests(container));

  const sidecars: Record<string, number> = {};
  const initPeak: Record<string, number> = {};
  for (const container of initContainers) {
    const requests = containerRequests(container);
    if (container.restartPolicy === "Always") {
      addAmounts(total, requests);
      addAmounts(sidecars, requests);
      raise(initPeak, sidecars);
    } else {
      const during = { ...sidecars };
      addAmounts(during, requests);
      raise(initPeak, during);
    }
  }
  raise(total, initPeak);
  if (resources?.requests !== undefined) Object.assign(total, parseAmounts(resources.requests));
  addAmounts(total, parseAmounts(overhead));
  total.pods = 1;
  return total;
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
