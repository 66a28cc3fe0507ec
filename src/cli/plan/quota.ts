import type { Container, Pod, PodSpec } from "../../api/kubernetes.ts";
import { type Amounts, addAmounts, exceeds, parseAmounts, writeQuantity } from "../../api/quantity.ts";
import { containerRequests, isPodLevel, podLevelRequests, podRequests } from "../../placement/requests.ts";
import { podLimits } from "./pod-limits.ts";
import type { QuotaRule, ScopeTerm } from "./rules.ts";

/** Resources of which each container must say something where a quota limits them (pkg/quota/v1/evaluator/core). */
const PER_CONTAINER = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"] as const;
const COMPUTE: ReadonlySet<string> = new Set(["cpu", "memory", "ephemeral-storage"]);

/** One ResourceQuota of the host's, as the pods of a manifest fill it. */
export class Quota {
  readonly namespace: string;
  readonly #name: string;
  readonly #quota: QuotaRule;
  readonly #hard: Amounts;
  readonly #used: Record<string, number>;

  constructor(quota: QuotaRule) {
    this.namespace = quota.metadata.namespace ?? "";
    this.#name = quota.metadata.name;
    this.#quota = quota;
    this.#hard = parseAmounts(quota.spec?.hard);
    this.#used = parseAmounts(quota.status?.used);
  }

  /** Why the API server would refuse the pod for this quota, in its words; undefined: it would not. */
  refusal(pod: Pod): string | undefined {
    const { spec } = pod;
    if (spec === undefined || !this.#matches(spec)) return undefined;
    const unsaid = this.#unsaid(spec);
    if (unsaid.length > 0) return `failed quota: ${this.#name}: must specify ${unsaid.join("; ")}`;
    const usage = usageOf(pod);
    const exceeded = Object.keys(this.#hard)
      .filter(
        (name) =>
          (usage[name] ?? 0) > 0 && exceeds((this.#used[name] ?? 0) + (usage[name] ?? 0), this.#hard[name] ?? 0),
      )
      .sort();
    if (exceeded.length === 0) return undefined;
    const list = (amounts: Amounts): string =>
      exceeded.map((name) => `${name}=${writeQuantity(plainName(name), amounts[name] ?? 0)}`).join(",");
    return `exceeded quota: ${this.#name}, requested: ${list(usage)}, used: ${list(this.#used)}, limited: ${list(this.#hard)}`;
  }

  /** Counts a pod that is let in, or, with -1, one that goes. */
  count(pod: Pod, factor: 1 | -1 = 1): void {
    if (pod.spec !== undefined && this.#matches(pod.spec)) addAmounts(this.#used, usageOf(pod), factor);
  }

  #matches(spec: PodSpec): boolean {
    const { scopes = [], scopeSelector } = this.#quota.spec ?? {};
    return (
      scopes.every((scopeName) => inScope(spec, { scopeName, operator: "Exists" })) &&
      (scopeSelector?.matchExpressions ?? []).every((term) => inScope(spec, term))
    );
  }

  /** What each container must say, and does not. */
  #unsaid(spec: PodSpec): string[] {
    if (hasPodLevel(spec)) return [];
    const { containers, initContainers = [] } = spec;
    const silent = PER_CONTAINER.filter((name) => this.#hard[name] !== undefined).map((name) => {
      const names = [...containers, ...initContainers].filter((one) => !says(one, name)).map((one) => one.name);
      return { name, names: [...new Set(names)].sort() };
    });
    return silent
      .filter(({ names }) => names.length > 0)
      .map(({ name, names }) => `${name} for: ${names.join(",")}`)
      .sort();
  }
}

function says(container: Container, name: string): boolean {
  const stated = name.startsWith("limits.") ? parseAmounts(container.resources?.limits) : containerRequests(container);
  return stated[plainName(name)] !== undefined;
}

function plainName(name: string): string {
  return name.replace(/^(requests|limits)\./, "");
}

/** What a pod counts in a quota, by the names that a quota has for it. */
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

function inScope(spec: PodSpec, { scopeName, operator, values = [] }: ScopeTerm): boolean {
  switch (scopeName) {
    case "Terminating":
      return spec.activeDeadlineSeconds !== undefined;
    case "NotTerminating":
      return spec.activeDeadlineSeconds === undefined;
    case "BestEffort":
      return isBestEffort(spec);
    case "NotBestEffort":
      return !isBestEffort(spec);
    case "PriorityClass":
      return byPriority(spec.priorityClassName ?? "", operator, values);
    case "CrossNamespacePodAffinity":
      return reachesNamespaces(spec);
    default:
      return false;
  }
}

function byPriority(name: string, operator: string, values: readonly string[]): boolean {
  if (operator === "In") return values.includes(name);
  if (operator === "NotIn") return !values.includes(name);
  return operator === "Exists" ? name !== "" : name === "";
}

/** True when something is written for the pod as a whole: then its containers need not say anything. */
function hasPodLevel({ resources }: PodSpec): boolean {
  return Object.keys({ ...resources?.limits, ...resources?.requests }).some(isPodLevel);
}

function isBestEffort(spec: PodSpec): boolean {
  const { containers, initContainers = [] } = spec;
  const all = hasPodLevel(spec) ? [podLevelRequests(spec)] : [...containers, ...initContainers].map(containerRequests);
  return all.every(({ cpu = 0, memory = 0 }) => cpu === 0 && memory === 0);
}

function reachesNamespaces({ affinity }: PodSpec): boolean {
  return [affinity?.podAffinity, affinity?.podAntiAffinity].some((kind) =>
    [
      ...(kind?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
      ...(kind?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
    ].some(({ namespaces = [], namespaceSelector }) => namespaces.length > 0 || namespaceSelector !== undefined),
  );
}
