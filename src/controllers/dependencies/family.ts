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

/** Kinds that one controller copies. */
export interface Family {
  readonly name: string;
  readonly kinds: readonly DependencyKind[];
  readonly title: string;
  readonly of: (pod: Pod) => readonly Dependency[];
  /** Absent: the member is given all. Of others the member is the judge. */
  readonly selector?: (spec: ClusterSpec) => LabelSelector | undefined;
}

/** Every member of the pods gets these. */
export const NAMESPACED: Family = {
  name: "dependencies",
  kinds: NAMESPACED_KINDS,
  title: "ConfigMaps, Secrets and ServiceAccounts",
  of: dependenciesOf,
};

/** A member gets those that its Cluster selects. */
export const CLASSES: Family = {
  name: "classes",
  kinds: CLASS_KINDS,
  title: "PriorityClasses and RuntimeClasses",
  of: classesOf,
  selector: ({ classSelector }) => classSelector,
};

export function follows(
  { selector }: Family,
  spec: ClusterSpec,
  { metadata: { labels = {} } }: Stored<KubeObject>,
): boolean {
  const selected = selector?.(spec);
  return selected !== undefined && selectorMatches(selectorOf(selected), labels);
}
