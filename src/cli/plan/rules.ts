import type { ResourceList, Toleration } from "../../api/kubernetes.ts";

/** Quantities, as the API server or an author writes them. */
type Quantities = Readonly<Record<string, string | number>>;

interface RuleMetadata {
  readonly name: string;
  readonly namespace?: string;
}

/** Pods that a ResourceQuota is about. */
export interface ScopeTerm {
  readonly scopeName: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** A ResourceQuota, as far as pods are let in by it: one of the host's, or of a manifest. */
export interface QuotaRule {
  readonly metadata: RuleMetadata;
  readonly spec?: {
    readonly hard?: Quantities;
    readonly scopes?: readonly string[];
    readonly scopeSelector?: { readonly matchExpressions?: readonly ScopeTerm[] };
  };
  readonly status?: { readonly used?: Quantities };
}

/** What a LimitRange says of pods, of containers or of claims. */
export interface LimitRule {
  readonly type: string;
  readonly min?: Quantities;
  readonly max?: Quantities;
  readonly default?: Quantities;
  readonly defaultRequest?: Quantities;
  readonly maxLimitRequestRatio?: Quantities;
}

/** A LimitRange, likewise. */
export interface LimitRangeRule {
  readonly metadata: RuleMetadata;
  readonly spec?: { readonly limits?: readonly LimitRule[] };
}

/** A PriorityClass, likewise. */
export interface PriorityClassRule {
  readonly metadata: RuleMetadata;
  readonly globalDefault?: boolean;
}

/** A RuntimeClass, likewise. */
export interface RuntimeClassRule {
  readonly metadata: RuleMetadata;
  readonly overhead?: { readonly podFixed?: ResourceList };
  readonly scheduling?: {
    readonly nodeSelector?: Readonly<Record<string, string>>;
    readonly tolerations?: readonly Toleration[];
  };
}
