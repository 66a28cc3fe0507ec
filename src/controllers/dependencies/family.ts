import type { ClusterSpec } from "../../api/cluster.ts";
import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { type LabelSelector, selectorOf } from "../../api/label-expressions.ts";
import { selectorMatches } from "../../api/label-selector.ts";
import {
  CLASS_KINDS,
  classesOf,
  type Dependency,
  type DependencyKind,
  dependenciesOf,
  NAMESPACED_KINDS,
} from "../../pods/dependencies.ts";

/** Kinds that one controller copies, and the rule by which a member is given an object of them. */
export interface Family {
  /** Name of the work queue, in logs and metrics. */
  readonly name: string;
  readonly kinds: readonly DependencyKind[];
  /** The kinds, for people. */
  readonly title: string;
  /** Returns what a pod uses of these kinds. */
  readonly of: (pod: Pod) => readonly Dependency[];
  /** Returns the labels of objects that the member is given. Absent: it is given all. Of others the member is the judge. */
  readonly selector?: (spec: ClusterSpec) => LabelSelector | undefined;
}

/** Objects of a pod's namespace: every member of its pods gets them. */
export const NAMESPACED: Family = {
  name: "dependencies",
  kinds: NAMESPACED_KINDS,
  title: "ConfigMaps, Secrets and ServiceAccounts",
  of: dependenciesOf,
};

/** RuntimeClasses and PriorityClasses: a member gets those that its Cluster selects. */
export const CLASSES: Family = {
  name: "classes",
  kinds: CLASS_KINDS,
  title: "PriorityClasses and RuntimeClasses",
  of: classesOf,
  selector: ({ classSelector }) => classSelector,
};

/** Reports whether the member is given the object. */
export function follows(
  { selector }: Family,
  spec: ClusterSpec,
  { metadata: { labels = {} } }: Stored<KubeObject>,
): boolean {
  const selected = selector?.(spec);
  return selected !== undefined && selectorMatches(selectorOf(selected), labels);
}
