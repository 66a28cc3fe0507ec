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

/** The host's API server merges label keys into selectors (KEP-3243, KEP-3633). A member's refuses a key in both. */
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

/** API servers from 1.34 on do so for spread constraints. */
export function withMergedKeys(
  selector: WrittenSelector,
  keys: readonly string[],
  labels: Readonly<Record<string, string>>,
): WrittenSelector {
  const { matchExpressions = [] } = selector;
  const missing = keys.filter((key) => !matchExpressions.some((one) => isFor(one, key, "In")));
  const own = missing.flatMap((key) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    return value === undefined ? [] : [{ key, operator: "In", values: [value] }];
  });
  return own.length === 0 ? selector : { ...selector, matchExpressions: [...matchExpressions, ...own] };
}

function isFor({ key, operator }: Pick<WrittenExpression, "key" | "operator">, wanted: string, as: string): boolean {
  return key === wanted && operator === as;
}
