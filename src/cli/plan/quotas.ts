import type { Container, Pod, ResourceQuota, Stored } from "../../api/kubernetes.ts";
import { type Amounts, addAmounts, exceeds, parseAmounts, writeQuantity } from "../../api/quantity.ts";
import { podRequests } from "../../placement/requests.ts";

interface Counted {
  readonly namespace: string;
  readonly name: string;
  readonly hard: Amounts;
  readonly used: Record<string, number>;
}

/**
 * The host's ResourceQuotas as the pods of a manifest fill them: a dry-run stores nothing, so the API server lets the third pod in
 * where there is room for two. Quotas with scopes are left to the API server.
 */
export class Quotas {
  readonly #quotas: readonly Counted[];

  constructor(quotas: readonly Stored<ResourceQuota>[]) {
    this.#quotas = quotas.flatMap((quota) => {
      if (hasScopes(quota)) return [];
      const { metadata, spec, status } = quota;
      const { namespace = "", name } = metadata;
      return [{ namespace, name, hard: parseAmounts(spec?.hard), used: { ...parseAmounts(status?.used) } }];
    });
  }

  /** Counts a pod that comes. Returns the API server's words, and counts nothing, if a quota has no room for it. */
  admit(pod: Stored<Pod>): string | undefined {
    const usage = usageOf(pod);
    const own = this.#quotasOf(pod);
    for (const quota of own) {
      const refused = refusal(quota, usage);
      if (refused !== undefined) return refused;
    }
    for (const { used } of own) addAmounts(used, usage, 1);
    return undefined;
  }

  /** Counts a pod that goes. */
  release(pod: Stored<Pod>): void {
    for (const { used } of this.#quotasOf(pod)) addAmounts(used, usageOf(pod), -1);
  }

  #quotasOf({ metadata }: Stored<Pod>): readonly Counted[] {
    return this.#quotas.filter(({ namespace }) => namespace === metadata.namespace);
  }
}

/** Reports whether a quota counts some of its namespace's pods only. */
export function hasScopes({ spec }: ResourceQuota): boolean {
  return (spec?.scopes ?? []).length > 0 || (spec?.scopeSelector?.matchExpressions ?? []).length > 0;
}

/** As k8s.io/apiserver, pkg/admission/plugin/resourcequota/controller.go says it. */
function refusal({ name: quota, hard, used }: Counted, usage: Amounts): string | undefined {
  const exceeded = Object.keys(hard)
    .filter((name) => (usage[name] ?? 0) > 0 && exceeds((used[name] ?? 0) + (usage[name] ?? 0), hard[name] ?? 0))
    .sort();
  if (exceeded.length === 0) return undefined;
  const list = (amounts: Amounts): string =>
    exceeded
      .map((name) => `${name}=${writeQuantity(name.replace(/^(requests|limits)\./, ""), amounts[name] ?? 0)}`)
      .join(",");
  return `exceeded quota: ${quota}, requested: ${list(usage)}, used: ${list(used)}, limited: ${list(hard)}`;
}

const COMPUTE: ReadonlySet<string> = new Set(["cpu", "memory", "ephemeral-storage"]);

/** Returns a pod's amounts by the names that a quota has for them (pkg/quota/v1/evaluator/core/pods.go). */
function usageOf(pod: Pod): Amounts {
  const usage: Record<string, number> = { pods: 1, "count/pods": 1 };
  for (const [name, amount] of Object.entries(podRequests(pod))) {
    if (name === "pods") continue;
    usage[`requests.${name}`] = amount;
    if (COMPUTE.has(name) || name.startsWith("hugepages-")) usage[name] = amount;
  }
  for (const [name, amount] of Object.entries(podLimits(pod))) if (COMPUTE.has(name)) usage[`limits.${name}`] = amount;
  return usage;
}

/** Returns the pod's limits, summed as its requests are. */
function podLimits({ spec }: Pod): Amounts {
  if (spec === undefined) return {};
  const { containers, initContainers = [], resources, ...others } = spec;
  const limited = ({ resources: own, ...rest }: Container): Container =>
    own?.limits === undefined ? rest : { ...rest, resources: { requests: own.limits } };
  return podRequests({
    spec: {
      ...others,
      containers: containers.map(limited),
      initContainers: initContainers.map(limited),
      ...(resources?.limits === undefined ? {} : { resources: { requests: resources.limits } }),
    },
  });
}
