import { type Annotations, type Placement, parsePlacement } from "../src/api/annotations.ts";
import { INTERNAL_ANNOTATIONS, SCHEDULER_NAME_ANNOTATION } from "../src/api/keys.ts";

/** What an author's annotations mean, and everything that is wrong with them. */
export interface Read {
  readonly placement: Placement;
  readonly problems: readonly string[];
}

/**
 * Reads an author's annotations. Those that Legation writes itself are problems too, except on a pod that is a proxy
 * already: admission asks twice.
 */
export function readAnnotations(annotations: Annotations, options: { readonly proxy?: boolean } = {}): Read {
  const internal = [...INTERNAL_ANNOTATIONS]
    .filter((key) => annotations[key] !== undefined && !(options.proxy === true && key === SCHEDULER_NAME_ANNOTATION))
    .map((key) => `annotation ${key}: is written by Legation itself; remove it`);
  const parsed = parsePlacement(annotations);
  return parsed.ok
    ? { placement: parsed.placement, problems: internal }
    : { placement: {}, problems: [...parsed.problems.map(({ message }) => message), ...internal] };
}

/** What is legal but does less, or other, than it may seem. */
export function placementWarnings({ delegate, clusters, selector }: Placement): string[] {
  const warnings: string[] = [];
  if (delegate === false && (clusters !== undefined || selector !== undefined)) {
    warnings.push('legation.dev/delegate: "false": the pod stays in this cluster, whatever clusters are named');
  }
  if (selector?.length === 0) warnings.push("legation.dev/cluster-selector is empty: it selects every cluster");
  return warnings;
}
