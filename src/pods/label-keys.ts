import type { LabelSelectorFields } from "../api/label-expressions.ts";

interface Term {
  readonly labelSelector?: LabelSelectorFields;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

/**
 * Terms of affinity and spreading without the label keys that the host's API server has written into their selectors
 * already, wherever in `value` they are: a member's would write them again, and refuse a key that is in both (KEP-3633,
 * KEP-5105).
 */
export function withoutMergedKeys<T>(value: T): T {
  if (Array.isArray(value)) return value.map((item: unknown) => withoutMergedKeys(item)) as T;
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutMergedKeys(inner)]));
  const { labelSelector, matchLabelKeys, mismatchLabelKeys } = value as Term;
  setRest(copy, "matchLabelKeys", restOf(matchLabelKeys, labelSelector, "In"));
  setRest(copy, "mismatchLabelKeys", restOf(mismatchLabelKeys, labelSelector, "NotIn"));
  return copy as T;
}

/** Those of the keys that no expression of the selector stands for; undefined when none is left. */
function restOf(
  keys: readonly string[] = [],
  selector: LabelSelectorFields | undefined,
  operator: string,
): string[] | undefined {
  const merged = new Set(
    (selector?.matchExpressions ?? []).filter((one) => one.operator === operator).map(({ key }) => key),
  );
  const rest = keys.filter((key) => !merged.has(key));
  return rest.length === 0 ? undefined : rest;
}

function setRest(copy: Record<string, unknown>, name: string, rest: readonly string[] | undefined): void {
  if (rest === undefined) delete copy[name];
  else copy[name] = rest;
}
