import { isEmptyTerm } from "../api/cluster-affinity.ts";
import type { ClusterSpread } from "../api/cluster-spread.ts";
import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { NodeSelectorTerm, Pod, PodSpec } from "../api/kubernetes.ts";
import { isKnownExpression, type LabelExpression } from "../api/label-expressions.ts";
import { holdsFor, type VirtualNodeWish } from "../api/virtual-node-wish.ts";
import { withMergedKeys } from "./label-keys.ts";

type Affinity = NonNullable<PodSpec["affinity"]>;
type NodeAffinity = NonNullable<Affinity["nodeAffinity"]>;
type SpreadConstraint = NonNullable<PodSpec["topologySpreadConstraints"]>[number];

/** A word to the host's scheduler, that it keep away from virtual nodes: a member's nodes are as it wants them. */
const AWAY = "DoesNotExist";

/** What the pod's node selector and node affinity say of virtual nodes, as Kueue writes it for a flavor; undefined: nothing. */
export function virtualNodeWish({ spec }: Pod): VirtualNodeWish | undefined {
  const selected = spec?.nodeSelector?.[VIRTUAL_NODE_LABEL];
  const { required, preferred } = termsOf(spec?.affinity?.nodeAffinity);
  const wish = {
    ...(selected === undefined ? {} : { selected }),
    ...(required.some(speaksOfIt) ? { required: alternatives(required).map(ofVirtualNode) } : {}),
    ...preferences(preferred),
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

/**
 * The spec as it stands for a member's own nodes, which do not have the label of the virtual one: what is said of that is decided when the
 * pod goes there. The same object where nothing is said.
 */
export function specForNodesOf(member: string, spec: PodSpec): PodSpec {
  const { nodeSelector, affinity, topologySpreadConstraints = [] } = spec;
  const nodeAffinity = affinity?.nodeAffinity;
  const { required, preferred } = termsOf(nodeAffinity);
  const isSelected = nodeSelector?.[VIRTUAL_NODE_LABEL] !== undefined;
  const terms = [...required, ...preferred.map(({ preference }) => preference)];
  const isSpread = topologySpreadConstraints.some(isOverVirtualNodes);
  if (!isSelected && !isSpread && !terms.some(speaksOfIt)) return spec;
  const copy: PodSpec = { ...spec };
  if (nodeSelector !== undefined) {
    const { [VIRTUAL_NODE_LABEL]: _, ...kept } = nodeSelector;
    delete copy.nodeSelector;
    if (Object.keys(kept).length > 0) copy.nodeSelector = kept;
  }
  if (affinity !== undefined && nodeAffinity !== undefined) {
    const { nodeAffinity: _, ...others } = affinity;
    const own = nodeAffinityIn(member, nodeAffinity);
    delete copy.affinity;
    const kept = own === undefined ? others : { ...others, nodeAffinity: own };
    if (Object.keys(kept).length > 0) copy.affinity = kept;
  }
  if (isSpread) {
    const kept = topologySpreadConstraints.filter((constraint) => !isOverVirtualNodes(constraint));
    delete copy.topologySpreadConstraints;
    if (kept.length > 0) copy.topologySpreadConstraints = kept;
  }
  return copy;
}

function isOverVirtualNodes({ topologyKey }: SpreadConstraint): boolean {
  return topologyKey === VIRTUAL_NODE_LABEL;
}

function nodeAffinityIn(member: string, nodeAffinity: NodeAffinity): NodeAffinity | undefined {
  const {
    requiredDuringSchedulingIgnoredDuringExecution: required,
    preferredDuringSchedulingIgnoredDuringExecution: preferred,
    ...others
  } = nodeAffinity;
  const all = alternatives(required?.nodeSelectorTerms ?? []);
  const holding = all.filter((term) => mayHold(term, member));
  // A pod that is there all the same keeps what it asks of nodes: affinity is not asked again once it is placed.
  const terms = holding.length === 0 ? all : holding;
  const wishes = preferred
    ?.filter(({ preference }) => mayHold(preference, member) && !saysNothingElse(preference))
    .map((wish) => ({ ...wish, preference: ofNodes(wish.preference) }));
  const kept = {
    ...others,
    // A term that says nothing else holds for each node.
    ...(terms.length === 0 || terms.some(saysNothingElse)
      ? {}
      : { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms.map(ofNodes) } }),
    ...(wishes === undefined || wishes.length === 0 ? {} : { preferredDuringSchedulingIgnoredDuringExecution: wishes }),
  };
  return Object.keys(kept).length === 0 ? undefined : kept;
}

/** Those of required terms that are for virtual nodes: where one speaks of them, one that keeps away from them, or is empty, is for none. */
function alternatives(terms: readonly NodeSelectorTerm[]): readonly NodeSelectorTerm[] {
  return terms.some(speaksOfIt) ? terms.filter((term) => !isEmptyTerm(term) && !keepsAway(term)) : terms;
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

function preferences(
  preferred: NonNullable<NodeAffinity["preferredDuringSchedulingIgnoredDuringExecution"]>,
): Pick<VirtualNodeWish, "preferred"> {
  const wishes = preferred
    .filter(({ preference }) => saysNothingElse(preference))
    .map(({ weight, preference }) => ({ weight, expressions: ofVirtualNode(preference) }));
  return wishes.length === 0 ? {} : { preferred: wishes };
}

function ofVirtualNode({ matchExpressions = [] }: NodeSelectorTerm): LabelExpression[] {
  return matchExpressions.flatMap((expression) => (isOfVirtualNode(expression) ? [expression] : []));
}

function keepsAway(term: NodeSelectorTerm): boolean {
  const { matchExpressions = [] } = term;
  return (
    !speaksOfIt(term) && matchExpressions.some(({ key, operator }) => key === VIRTUAL_NODE_LABEL && operator === AWAY)
  );
}

function isOfVirtualNode(expression: {
  readonly key: string;
  readonly operator: string;
}): expression is LabelExpression {
  const { key, operator } = expression;
  return key === VIRTUAL_NODE_LABEL && operator !== AWAY && isKnownExpression(expression);
}

function ofNodes(term: NodeSelectorTerm): NodeSelectorTerm {
  const { matchExpressions, ...others } = term;
  const kept = matchExpressions?.filter((expression) => !isOfVirtualNode(expression)) ?? [];
  return kept.length === 0 ? others : { ...others, matchExpressions: kept };
}

function speaksOfIt(term: NodeSelectorTerm): boolean {
  return ofVirtualNode(term).length > 0;
}

function saysNothingElse(term: NodeSelectorTerm): boolean {
  return speaksOfIt(term) && isEmptyTerm(ofNodes(term));
}

function mayHold(term: NodeSelectorTerm, member: string): boolean {
  return holdsFor(ofVirtualNode(term), member);
}
