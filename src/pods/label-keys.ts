import type { PodSpec } from "../api/kubernetes.ts";
import type { LabelSelector } from "../api/label-expressions.ts";

type Constraint = NonNullable<PodSpec["topologySpreadConstraints"]>[number];
type WrittenSelector = NonNullable<Constraint["labelSelector"]>;
type WrittenExpression = NonNullable<WrittenSelector["matchExpressions"]>[number];

interface Term {
  readonly labelSelector?: LabelSelector;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

/**
 * Terms of affinity and spreading, wherever in `value` they are, without the label keys that the host's API server has written
 * into the selector beside them (KEP-3243, KEP-3633; no author may name a key in both). The selector says it all: a member's
 * API server would refuse a key that is in both, and one before 1.31 knows selectors alone.
 */
export function withoutMergedKeys<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item: unknown) => withoutMergedKeys(item)) as T;
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutMergedKeys(inner)]));
  const { labelSelector } = value as Term;
  const expressions = labelSelector?.matchExpressions ?? [];
  for (const [field, operator] of [
    ["matchLabelKeys", "In"],
    ["mismatchLabelKeys", "NotIn"],
  ] as const) {
    const keys = (value as Term)[field];
    if (keys === undefined) continue;
    const left = keys.filter((key) => !expressions.some((one) => isFor(one, key, operator)));
    if (left.length === 0) delete copy[field];
    else copy[field] = left;
  }
  return copy as T;
}

/** With the pod's own values of some keys, as API servers from 1.34 on write them into the selector of a spread constraint. */
export function withMergedKeys(
  selector: WrittenSelector,
  keys: readonly string[],
  labels: Readonly<Record<string, string>>,
): WrittenSelector {
  const { matchExpressions = [] } = selector;
  const missing = keys.filter((key) => !matchExpressions.some((one) => isFor(one, key, "In")));
  const own = missing.flatMap((key) => {
    const value = labels[key];
    return value === undefined ? [] : [{ key, operator: "In", values: [value] }];
  });
  return own.length === 0 ? selector : { ...selector, matchExpressions: [...matchExpressions, ...own] };
}

function isFor({ key, operator }: Pick<WrittenExpression, "key" | "operator">, wanted: string, as: string): boolean {
  return key === wanted && operator === as;
}
