import type { LabelSelectorFields } from "../api/label-expressions.ts";

type Labels = Readonly<Record<string, string>>;
type Expression = NonNullable<LabelSelectorFields["matchExpressions"]>[number];

interface Term {
  readonly labelSelector?: LabelSelectorFields;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

/**
 * Terms of affinity and spreading as their author wrote them, wherever in `value` they are: the host's API server has written
 * the pod's own value of each label key into the selector beside the key, and a member's would refuse a key that is in both
 * before it wrote its own (KEP-3243, KEP-3633).
 */
export function asWritten<T>(value: T, labels: Labels): T {
  if (Array.isArray(value)) return value.map((item: unknown) => asWritten(item, labels)) as T;
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, asWritten(inner, labels)]));
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = value as Term;
  if (labelSelector?.matchExpressions === undefined || matchLabelKeys.length + mismatchLabelKeys.length === 0) {
    return copy as T;
  }
  const { matchExpressions, ...rest } = labelSelector;
  const own = matchExpressions.filter(
    (one) => !isMerged(one, "In", matchLabelKeys, labels) && !isMerged(one, "NotIn", mismatchLabelKeys, labels),
  );
  copy.labelSelector = own.length === 0 ? rest : { ...rest, matchExpressions: own };
  return copy as T;
}

/** True for what an API server writes for one of these keys. */
function isMerged(
  { key, operator, values = [] }: Expression,
  as: string,
  keys: readonly string[],
  labels: Labels,
): boolean {
  return operator === as && keys.includes(key) && values.length === 1 && values[0] === labels[key];
}
