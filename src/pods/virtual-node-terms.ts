import { isEmptyTerm } from "../api/cluster-affinity.ts";
import type { ClusterSpread } from "../api/cluster-spread.ts";
import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { NodeSelectorTerm, Pod, PodSpec } from "../api/kubernetes.ts";
import { isKnownExpression, type LabelExpression, requirementOf } from "../api/label-expressions.ts";
import { selectorMatches } from "../api/label-selector.ts";
import { labelsFromCluster, OTHER_ROLES, VIRTUAL_NODE_KIND } from "../api/virtual-node-labels.ts";
import type { VirtualNodeWish } from "../api/virtual-node-wish.ts";
import { withMergedKeys } from "./label-keys.ts";
import { namedByLabel } from "./virtual-node-names.ts";

type Affinity = NonNullable<PodSpec["affinity"]>;
type NodeAffinity = NonNullable<Affinity["nodeAffinity"]>;
type SpreadConstraint = NonNullable<PodSpec["topologySpreadConstraints"]>[number];
type Labels = Readonly<Record<string, string>>;

/** A member as far as its virtual node shows it. */
export interface MemberLabels {
  readonly name: string;
  /** Labels of its Cluster. */
  readonly labels: Labels;
  /** Reports whether any of its nodes has a label of this key; absent: not known. */
  readonly nodesHave?: (key: string) => boolean;
}

/** A pod's spec in one member, and what its terms about virtual nodes say of that member. */
export interface SpecInMember {
  /** Without the terms that the virtual node meets, since the member's nodes do not have its labels. */
  readonly spec: PodSpec;
  /** Why the pod may not go there. */
  readonly refusal?: string;
  /** Sum of the weights of preferred terms that are about the virtual node alone, and hold. */
  readonly weight: number;
}

/** A word to the host's scheduler, that it keep away from virtual nodes: a member's nodes are as it wants them. */
const AWAY = "DoesNotExist";

const NAME_ALONE: Labels = { [VIRTUAL_NODE_LABEL]: "" };

/** Names of virtual nodes in the pod's node selector and node affinity, if any. */
export function virtualNodeWish({ spec }: Pod): VirtualNodeWish | undefined {
  const { nodeSelector, affinity } = namedByLabel(spec ?? { containers: [] });
  const selected = nodeSelector?.[VIRTUAL_NODE_LABEL];
  const { required } = termsOf(affinity?.nodeAffinity);
  const wish = {
    ...(selected === undefined ? {} : { selected }),
    ...(required.some(speaksOf(NAME_ALONE))
      ? { required: alternatives(required).map((term) => expressionsOver(NAME_ALONE, term)) }
      : {}),
  };
  return Object.keys(wish).length === 0 ? undefined : wish;
}

/** The pod's own spread over virtual nodes. A constraint without a selector counts no pods (kube-scheduler), and says nothing. */
export function virtualNodeSpread({ metadata, spec }: Pod): ClusterSpread[] {
  return (spec?.topologySpreadConstraints ?? []).filter(isOverVirtualNodes).flatMap((constraint) => {
    const { labelSelector, matchLabelKeys = [], nodeAffinityPolicy = "Honor", ...others } = constraint;
    if (labelSelector === undefined) return [];
    const selector = withMergedKeys(labelSelector, matchLabelKeys, metadata?.labels ?? {});
    return [{ ...others, nodeAffinityPolicy, labelSelector: selector } as ClusterSpread];
  });
}

/** Returns the spec as it stands for a member's own nodes; the same object where it says nothing of virtual nodes. */
export function specForNodesOf(member: MemberLabels, spec: PodSpec): PodSpec {
  return specInMember(member, spec).spec;
}

/** Judges a member by what a pod says of virtual nodes, and takes that out of the pod's spec. */
export function specInMember(member: MemberLabels, written: PodSpec): SpecInMember {
  const { nodeSelector, affinity, topologySpreadConstraints = [] } = written;
  const isSpread = topologySpreadConstraints.some(isOverVirtualNodes);
  if (nodeSelector === undefined && affinity?.nodeAffinity === undefined && !isSpread)
    return { spec: written, weight: 0 };
  const named = namedByLabel(written);
  const labels = labelsFor(member, named);
  const selected = selectorBeside(labels, named.nodeSelector);
  const terms = termsBeside(labels, named.affinity?.nodeAffinity);
  const refusal = selected.refusal ?? terms.refusal;
  const said = { ...(refusal === undefined ? {} : { refusal }), weight: terms.weight };
  if (named === written && !selected.changed && !terms.changed && !isSpread) return { spec: written, ...said };
  const copy: PodSpec = { ...named };
  if (selected.selector === undefined) delete copy.nodeSelector;
  else copy.nodeSelector = selected.selector;
  if (named.affinity?.nodeAffinity !== undefined) {
    const { nodeAffinity: _, ...others } = named.affinity;
    const kept = terms.nodeAffinity === undefined ? others : { ...others, nodeAffinity: terms.nodeAffinity };
    if (Object.keys(kept).length > 0) copy.affinity = kept;
    else delete copy.affinity;
  }
  if (isSpread) {
    const kept = topologySpreadConstraints.filter((constraint) => !isOverVirtualNodes(constraint));
    delete copy.topologySpreadConstraints;
    if (kept.length > 0) copy.topologySpreadConstraints = kept;
  }
  return { spec: copy, ...said };
}

/** Returns the labels by which the member's virtual node answers: its name, and others that none of the member's nodes has. */
function labelsFor({ name, labels, nodesHave }: MemberLabels, spec: PodSpec): Labels {
  const answered: Record<string, string> = { [VIRTUAL_NODE_LABEL]: name };
  if (nodesHave === undefined) return answered;
  const roles = isForVirtualKubelets(spec) ? OTHER_ROLES : {};
  const all: Labels = { ...roles, ...labelsFromCluster(labels), ...VIRTUAL_NODE_KIND };
  for (const key of keysOf(spec)) {
    const value = Object.hasOwn(all, key) ? all[key] : undefined;
    if (value !== undefined && key !== VIRTUAL_NODE_LABEL && !nodesHave(key)) answered[key] = value;
  }
  return answered;
}

function isForVirtualKubelets({ nodeSelector, affinity }: PodSpec): boolean {
  const { type = "" } = VIRTUAL_NODE_KIND;
  if (nodeSelector?.type === type) return true;
  return termsOf(affinity?.nodeAffinity).required.some(({ matchExpressions = [] }) =>
    matchExpressions.some(({ key, operator, values }) => key === "type" && operator === "In" && values?.includes(type)),
  );
}

function keysOf({ nodeSelector, affinity }: PodSpec): Set<string> {
  const { required, preferred } = termsOf(affinity?.nodeAffinity);
  const terms = [...required, ...preferred.map(({ preference }) => preference)];
  const expressed = terms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key));
  return new Set([...Object.keys(nodeSelector ?? {}), ...expressed]);
}

/** A requirement that the virtual node does not meet stays, for no node of the member meets it either. */
function selectorBeside(
  labels: Labels,
  selector: PodSpec["nodeSelector"],
): { readonly selector: PodSpec["nodeSelector"]; readonly changed: boolean; readonly refusal?: string } {
  const kept: Record<string, string> = {};
  let refusal: string | undefined;
  for (const [key, value] of Object.entries(selector ?? {})) {
    const answer = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (answer !== undefined && answer !== value)
      refusal ??= `the pod's nodeSelector says ${key}: ${JSON.stringify(value)}`;
    if (answer === undefined || (answer !== value && key !== VIRTUAL_NODE_LABEL)) kept[key] = value;
  }
  const count = Object.keys(kept).length;
  return {
    selector: count === 0 ? undefined : kept,
    changed: count !== Object.keys(selector ?? {}).length,
    ...(refusal === undefined ? {} : { refusal }),
  };
}

function termsBeside(
  labels: Labels,
  nodeAffinity: NodeAffinity | undefined,
): Omit<SpecInMember, "spec"> & { readonly nodeAffinity?: NodeAffinity; readonly changed: boolean } {
  const { required, preferred } = termsOf(nodeAffinity);
  const speaks = speaksOf(labels);
  if (nodeAffinity === undefined || ![...required, ...preferred.map(({ preference }) => preference)].some(speaks)) {
    return { weight: 0, changed: false, ...(nodeAffinity === undefined ? {} : { nodeAffinity }) };
  }
  const {
    requiredDuringSchedulingIgnoredDuringExecution: _required,
    preferredDuringSchedulingIgnoredDuringExecution: wishes,
    ...others
  } = nodeAffinity;
  const saysNothingElse = (term: NodeSelectorTerm): boolean => speaks(term) && isEmptyTerm(besides(labels, term));
  const all = alternatives(required);
  const holding = all.filter((term) => failing(labels, term) === undefined);
  // A pod that is there all the same keeps what it asks of nodes: affinity is not asked again once it is placed.
  const terms = holding.length === 0 ? all : holding;
  const held = preferred.filter(({ preference }) => failing(labels, preference) === undefined);
  const kept = held.filter(({ preference }) => !saysNothingElse(preference));
  const own = {
    ...others,
    // A term that says nothing else holds for each node.
    ...(terms.length === 0 || terms.some(saysNothingElse)
      ? {}
      : {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: terms.map((term) => besides(labels, term)),
          },
        }),
    ...(wishes === undefined || kept.length === 0
      ? {}
      : {
          preferredDuringSchedulingIgnoredDuringExecution: kept.map((wish) => ({
            ...wish,
            preference: besides(labels, wish.preference),
          })),
        }),
  };
  const [refused] = holding.length === 0 ? all.flatMap((term) => failing(labels, term) ?? []) : [];
  const weight = held
    .filter(({ preference }) => saysNothingElse(preference))
    .reduce((sum, wish) => sum + wish.weight, 0);
  return {
    weight,
    changed: true,
    ...(Object.keys(own).length === 0 ? {} : { nodeAffinity: own }),
    ...(refused === undefined
      ? {}
      : { refusal: `no term of the pod's nodeAffinity allows ${refused}: ${JSON.stringify(labels[refused])}` }),
  };
}

function isOverVirtualNodes({ topologyKey }: SpreadConstraint): boolean {
  return topologyKey === VIRTUAL_NODE_LABEL;
}

/** Returns the required terms that virtual nodes can meet: if a term names some, not those that exclude them or are empty. */
function alternatives(terms: readonly NodeSelectorTerm[]): readonly NodeSelectorTerm[] {
  return terms.some(speaksOf(NAME_ALONE)) ? terms.filter((term) => !isEmptyTerm(term) && !keepsAway(term)) : terms;
}

function keepsAway(term: NodeSelectorTerm): boolean {
  const { matchExpressions = [] } = term;
  return (
    !speaksOf(NAME_ALONE)(term) &&
    matchExpressions.some(({ key, operator }) => key === VIRTUAL_NODE_LABEL && operator === AWAY)
  );
}

function termsOf(nodeAffinity: NodeAffinity | undefined): {
  readonly required: readonly NodeSelectorTerm[];
  readonly preferred: NonNullable<NodeAffinity["preferredDuringSchedulingIgnoredDuringExecution"]>;
} {
  return {
    required: nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [],
    preferred: nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [],
  };
}

/** The expressions of a term that these labels answer. */
function expressionsOver(labels: Labels, { matchExpressions = [] }: NodeSelectorTerm): LabelExpression[] {
  return matchExpressions.flatMap((expression) => (isOver(labels, expression) ? [expression] : []));
}

function isOver(
  labels: Labels,
  expression: { readonly key: string; readonly operator: string },
): expression is LabelExpression {
  const { key, operator } = expression;
  if (!Object.hasOwn(labels, key) || !isKnownExpression(expression)) return false;
  return key !== VIRTUAL_NODE_LABEL || operator !== AWAY;
}

function speaksOf(labels: Labels): (term: NodeSelectorTerm) => boolean {
  return (term) => expressionsOver(labels, term).length > 0;
}

/** The key of the first expression that these labels do not meet. */
function failing(labels: Labels, term: NodeSelectorTerm): string | undefined {
  return expressionsOver(labels, term).find((expression) => !selectorMatches([requirementOf(expression)], labels))?.key;
}

/** The term without what these labels answer. */
function besides(labels: Labels, term: NodeSelectorTerm): NodeSelectorTerm {
  const { matchExpressions, ...others } = term;
  const kept = matchExpressions?.filter((expression) => !isOver(labels, expression)) ?? [];
  return kept.length === 0 ? others : { ...others, matchExpressions: kept };
}
