import type { Pod, PodSpec, Stored } from "../../api/kubernetes.ts";
import { type DependencyKey, dependencyKey } from "../../pods/dependencies.ts";
import { limitRefusal, withDefaults } from "./limit-range.ts";
import { Quota } from "./quota.ts";
import type { LimitRangeRule, PriorityClassRule, QuotaRule, RuntimeClassRule } from "./rules.ts";

/** What the host's API server lets pods in by, as far as it was asked for and could be read. */
export interface HostRules {
  /** ConfigMaps, Secrets and service accounts that pods name and that are not there. */
  readonly missing: ReadonlySet<DependencyKey>;
  readonly quotas: readonly QuotaRule[];
  readonly limitRanges: readonly LimitRangeRule[];
  /** Absent: not asked for, or not readable. */
  readonly priorityClasses?: readonly PriorityClassRule[] | undefined;
  readonly runtimeClasses?: readonly RuntimeClassRule[] | undefined;
  /** What could not be read, so that it is taken for granted. */
  readonly unread: readonly string[];
}

/** A pod as the API server's own plugins leave it, or why they refuse it. */
export type LetIn = { readonly pod: Stored<Pod>; readonly refused?: never } | { readonly refused: string };

/**
 * The plugins of the host's API server that refuse pods for what else is in the host: service accounts, classes, LimitRanges
 * and quotas, in its order and words. Pods that are let in fill the quotas.
 */
export class HostAdmission {
  readonly #rules: HostRules | undefined;
  readonly #quotas: readonly Quota[];

  constructor(rules: HostRules | undefined) {
    this.#rules = rules;
    this.#quotas = (rules?.quotas ?? []).map((quota) => new Quota(quota));
  }

  /** Lets a pod in, and counts it. */
  admit(pod: Stored<Pod>): LetIn {
    const rules = this.#rules;
    const { spec } = pod;
    if (rules === undefined || spec === undefined) return { pod };
    const { namespace = "" } = pod.metadata;
    const { serviceAccountName: account = "default" } = spec;
    if (rules.missing.has(dependencyKey({ kind: "ServiceAccount", namespace, name: account }))) {
      const words = `error looking up service account ${namespace}/${account}: serviceaccount "${account}" not found`;
      return { refused: words };
    }
    const priority = spec.priorityClassName ?? rules.priorityClasses?.find((one) => one.globalDefault)?.metadata.name;
    if (rules.priorityClasses?.every(({ metadata }) => metadata.name !== priority) === true && priority !== undefined) {
      return { refused: `no PriorityClass with name ${priority} was found` };
    }
    const runtime = rules.runtimeClasses?.find(({ metadata }) => metadata.name === spec.runtimeClassName);
    if (runtime === undefined && rules.runtimeClasses !== undefined && spec.runtimeClassName !== undefined) {
      return { refused: `pod rejected: RuntimeClass "${spec.runtimeClassName}" not found` };
    }
    const ranges = rules.limitRanges.filter(({ metadata }) => metadata.namespace === namespace);
    const filled = {
      ...withDefaults(runtime === undefined ? spec : withRuntime(spec, runtime), ranges),
      ...(priority === undefined ? {} : { priorityClassName: priority }),
    };
    const limited = limitRefusal(filled, ranges);
    if (limited !== undefined) return { refused: limited };
    const whole = { ...pod, spec: filled };
    for (const quota of this.#quotasOf(namespace)) {
      const refused = quota.refusal(whole);
      if (refused !== undefined) return { refused };
    }
    for (const quota of this.#quotasOf(namespace)) quota.count(whole);
    return { pod: whole };
  }

  /** A pod that was counted goes. */
  release(pod: Stored<Pod>): void {
    for (const quota of this.#quotasOf(pod.metadata.namespace ?? "")) quota.count(pod, -1);
  }

  #quotasOf(namespace: string): readonly Quota[] {
    return this.#quotas.filter((quota) => quota.namespace === namespace);
  }
}

/** What a RuntimeClass adds to its pods. */
function withRuntime(spec: PodSpec, { overhead, scheduling = {} }: RuntimeClassRule): PodSpec {
  const { nodeSelector = {}, tolerations = [] } = scheduling;
  return {
    ...spec,
    ...(overhead?.podFixed === undefined ? {} : { overhead: overhead.podFixed }),
    nodeSelector: { ...nodeSelector, ...spec.nodeSelector },
    tolerations: [...(spec.tolerations ?? []), ...tolerations],
  };
}
