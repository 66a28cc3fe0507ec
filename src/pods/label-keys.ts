import type { LabelSelector } from "../api/label-expressions.ts";

type Expression = NonNullable<LabelSelector["matchExpressions"]>[number];

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

function isFor({ key, operator }: Expression, wanted: string, as: string): boolean {
  return key === wanted && operator === as;
}
