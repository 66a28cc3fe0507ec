import {
  type Annotations,
  authorAnnotations,
  parsePlacement,
  type RequestedPlacement,
} from "../src/api/annotations.ts";
import { isEmptyTerm } from "../src/api/cluster-affinity.ts";
import { isJsonObject, type JsonObject, valueAt } from "../src/api/json.ts";
import {
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTER_SPREAD_ANNOTATION,
  CLUSTERS_ANNOTATION,
  DELEGATE_ANNOTATION,
  INTERNAL_ANNOTATIONS,
  OVERRIDES_ANNOTATION,
  RESTRICTED_ANNOTATION,
  SCHEDULER_NAME_ANNOTATION,
} from "../src/api/keys.ts";
import { privilegeProblems } from "../src/pods/overrides.ts";
import type { ReviewedObject } from "./admission-review.ts";

/** An author's placement, and all problems of the annotations. */
export interface Read {
  readonly placement: RequestedPlacement;
  readonly problems: readonly string[];
}

/** Parses an author's annotations. Legation's own are problems, unless the pod is a proxy: admission may run twice. */
export function readAnnotations(annotations: Annotations, options: { readonly proxy?: boolean } = {}): Read {
  const internal = [...INTERNAL_ANNOTATIONS]
    .filter((key) => annotations[key] !== undefined && key !== RESTRICTED_ANNOTATION)
    .filter((key) => !(options.proxy === true && key === SCHEDULER_NAME_ANNOTATION))
    .map((key) => `annotation ${key}: is written by Legation itself; remove it`);
  const parsed = parsePlacement(annotations);
  return parsed.ok
    ? { placement: parsed.placement, problems: internal }
    : { placement: {}, problems: [...parsed.problems.map(({ message }) => message), ...internal] };
}

/** Returns the annotations at a path, empty if there are none. Undefined if they are no map of strings. */
export function annotationsAt(object: JsonObject, path: readonly string[]): Record<string, string> | undefined {
  const found = valueAt(object, [...path, "annotations"]) ?? {};
  if (!isJsonObject(found)) return undefined;
  const annotations: Record<string, string> = {};
  for (const [key, value] of Object.entries(found)) {
    if (typeof value !== "string") return undefined;
    annotations[key] = value;
  }
  return annotations;
}

/** Names the annotation in those of its problems that there are. */
export function annotationProblems(key: string, problems: readonly (string | false | undefined)[]): string[] {
  return problems.filter((problem) => typeof problem === "string").map((problem) => `annotation ${key}: ${problem}`);
}

export function without(annotations: Annotations, keys: readonly string[]): Record<string, string> {
  const left = new Set(keys);
  return picked(annotations, (key) => !left.has(key));
}

export function picked(annotations: Annotations, isPicked: (key: string) => boolean): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => isPicked(key)));
}

/** Returns privileges that overrides would add behind the host's admission. `spec` is unchecked. */
export function overrideProblems({ overrides = [] }: RequestedPlacement, spec: unknown): string[] {
  if (overrides.length === 0 || !isJsonObject(spec)) return [];
  return annotationProblems(OVERRIDES_ANNOTATION, privilegeProblems({ containers: [], ...spec }, overrides));
}

/** Returns warnings for legal annotations that may surprise. */
export function placementWarnings({
  delegate,
  clusters,
  selector,
  affinity,
  group,
  groupBy,
}: RequestedPlacement): string[] {
  const warnings: string[] = [];
  if (delegate === false && (clusters !== undefined || selector !== undefined)) {
    warnings.push('legation.dev/delegate: "false": the pod stays in this cluster, whatever clusters are named');
  }
  if (selector?.length === 0) warnings.push("legation.dev/cluster-selector is empty: it selects every cluster");
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const preferred = affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [];
  if ([...required, ...preferred.map(({ preference }) => preference)].some(isEmptyTerm)) {
    warnings.push("legation.dev/cluster-affinity has an empty term: it matches no cluster");
  }
  if (group !== undefined && groupBy !== undefined) {
    warnings.push("legation.dev/group names the group: legation.dev/group-by does not count");
  }
  return warnings;
}

/** Warns of a spread constraint on a pod without a controller. */
export function spreadWarnings({ metadata }: ReviewedObject, { spread = [] }: RequestedPlacement): string[] {
  const owned = metadata.ownerReferences?.some(({ controller }) => controller === true) ?? false;
  if (owned || spread.every(({ labelSelector }) => labelSelector !== undefined)) return [];
  return [
    `${CLUSTER_SPREAD_ANNOTATION}: the pod has no controller, and so none to be spread with; write a labelSelector, or it has no effect`,
  ];
}

// Keys with a warning of their own beside `delegate: "false"`.
const NOT_IDLE: readonly string[] = [DELEGATE_ANNOTATION, CLUSTERS_ANNOTATION, CLUSTER_SELECTOR_ANNOTATION];

/** Warns of placement annotations on pods that are not delegated, one each: the API server truncates long warnings. */
export function idleWarnings(annotations: Annotations, { delegate }: RequestedPlacement): string[] {
  const reason =
    delegate === false
      ? `has no effect beside ${DELEGATE_ANNOTATION}: "false"`
      : `does not ask for delegation by itself, so it has no effect here; write ${DELEGATE_ANNOTATION}: "true", too`;
  const idle = Object.keys(authorAnnotations(annotations)).filter((key) => !NOT_IDLE.includes(key));
  return idle.map((key) => `${key}: ${reason}`);
}
