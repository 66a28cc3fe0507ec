import type { ClusterSpec } from "../../api/cluster.ts";
import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { type LabelSelector, selectorOf } from "../../api/label-expressions.ts";
import { selectorMatches } from "../../api/label-selector.ts";
import type { Member } from "../../clusters/member.ts";
import type { DependencyObject } from "../../copies/dependencies.ts";
import type { CopiedKind } from "../../copies/kind.ts";
import type { Dependency } from "../../copies/named-by-pods.ts";
import type { Preparation } from "../../placement/needs.ts";

/** Kinds that one controller copies. */
export interface Family<T extends KubeObject = DependencyObject> {
  readonly name: string;
  readonly kinds: readonly CopiedKind<T>[];
  readonly title: string;
  readonly of: (pod: Pod) => readonly Dependency[];
  /** Selects the classes that a member is given. Of others the member is the judge. Absent: the kinds are no classes. */
  readonly selector?: (spec: ClusterSpec) => LabelSelector | undefined;
  /** Says why pods in members cannot use an object of the host. Undefined if they can. Default: they can use all. */
  readonly obstacle?: (object: Stored<T>) => string | undefined;
  /** Reports whether a member has what is needed there for an object. Default: all have. */
  readonly preparationIn?: (member: Member, object: Stored<T>) => Preparation;
  /** Returns the pods that go to one member with this one. Absent: pods that name one object may be in several members. */
  readonly groupOf?: (pod: Pod) => string | undefined;
}

export function isSelected(
  { selector }: Pick<Family, "selector">,
  spec: ClusterSpec,
  { metadata: { labels = {} } }: Stored<KubeObject>,
): boolean {
  const selected = selector?.(spec);
  return selected !== undefined && selectorMatches(selectorOf(selected), labels);
}
