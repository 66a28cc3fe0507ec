import type { ClusterSpread } from "../api/cluster-spread.ts";
import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { NodeSelectorTerm, Pod, PodSpec } from "../api/kubernetes.ts";
import { isKnownExpression, type LabelExpression } from "../api/label-expressions.ts";
import { holdsFor, type VirtualNodeWish } from "../api/virtual-node-wish.ts";

type Affinity = NonNullable<PodSpec["affinity"]>;
type NodeAffinity = NonNullable<Affinity["nodeAffinity"]>;
type SpreadConstraint = NonNullable<PodSpec["topologySpreadConstraints"]>[number];

/** What the pod's node selector and node affinity say of virtual nodes, as Kueue writes it for a flavor; undefined: nothing. */
export function virtualNodeWish({ spec }: Pod): VirtualNodeWish | undefined {
  const selected = spec?.nodeSelector?.[VIRTUAL_NODE_LABEL];
  const { required, preferred } = termsOf(spec?.affinity?.nodeAffinity);
  const wish = {
    ...(selected === undefined ? {} : { selected }),
    // An empty term holds for no node.
    ...(required.some(speaksOfIt) ? { required: required.filter((term) => !isEmpty(term)).map(ofVirtualNode) } : {}),
    ...preferences(preferred),
  };
  return Object.keys(wish).length === 0 ? undefined : wish;
}

/** The pod's own spread over virtual nodes. A constraint without a selector counts no pods (kube-scheduler), and says nothing. */
export function virtualNodeSpread({ spec }: Pod): ClusterSpread[] {
  return (spec?.topologySpreadConstraints ?? []).filter(isOverVirtualNodes).flatMap((constraint) => {
    const { labelSelector, whenUnsatisfiable, nodeTaintsPolicy, maxSkew, minDomains, topologyKey } = constraint;
    if (labelSelector === undefined) return [];
    const spread = {
      topologyKey,
      maxSkew,
      labelSelector,
      whenUnsatisfiable,
      ...(minDomains === undefined ? {} : { minDomains }),
      ...(nodeTaintsPolicy === undefined ? {} : { nodeTaintsPolicy }),
    };
    return [spread as ClusterSpread];
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
  const terms = required?.nodeSelectorTerms.filter((term) => mayHold(term, member));
  const wishes = preferred
    ?.filter(({ preference }) => mayHold(preference, member) && !saysNothingElse(preference))
    .map((wish) => ({ ...wish, preference: ofNodes(wish.preference) }));
  const kept = {
    ...others,
    // A term that says nothing else holds for each node.
    ...(terms === undefined || terms.some(saysNothingElse)
      ? {}
      : { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms.map(ofNodes) } }),
    ...(wishes === undefined || wishes.length === 0 ? {} : { preferredDuringSchedulingIgnoredDuringExecution: wishes }),
  };
  return Object.keys(kept).length === 0 ? undefined : kept;
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
  return matchExpressions.flatMap((expression) =>
    expression.key === VIRTUAL_NODE_LABEL && isKnownExpression(expression) ? [expression] : [],
  );
}

function ofNodes(term: NodeSelectorTerm): NodeSelectorTerm {
  const { matchExpressions, ...others } = term;
  const kept = matchExpressions?.filter(({ key }) => key !== VIRTUAL_NODE_LABEL) ?? [];
  return kept.length === 0 ? others : { ...others, matchExpressions: kept };
}

function speaksOfIt(term: NodeSelectorTerm): boolean {
  return ofVirtualNode(term).length > 0;
}

function saysNothingElse(term: NodeSelectorTerm): boolean {
  return speaksOfIt(term) && isEmpty(ofNodes(term));
}

function mayHold(term: NodeSelectorTerm, member: string): boolean {
  return holdsFor(ofVirtualNode(term), member);
}

function isEmpty({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): boolean {
  return matchExpressions.length + matchFields.length === 0;
}
