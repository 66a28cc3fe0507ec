import { isEmptyTerm } from "../api/cluster-affinity.ts";
import type { ClusterSpread } from "../api/cluster-spread.ts";
import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { NodeSelectorTerm, Pod, PodSpec } from "../api/kubernetes.ts";
import { isKnownExpression, type LabelExpression, requirementOf } from "../api/label-expressions.ts";
import { selectorMatches } from "../api/label-selector.ts";
import { labelsFromCluster, OTHER_ROLES, VIRTUAL_NODE_KIND } from "../api/virtual-node.ts";
import type { VirtualNodeWish } from "../api/virtual-node-wish.ts";
import { withMergedKeys } from "./label-keys.ts";
import { type NodeAffinity, namedByLabel, termsOf, withTerms } from "./virtual-node-names.ts";

type SpreadConstraint = NonNullable<PodSpec["topologySpreadConstraints"]>[number];
type Labels = Readonly<Record<string, string>>;

export interface MemberLabels {
  readonly name: string;
  readonly labels: Labels;
  /** Returns undefined if not known. */
  readonly nodesHave?: (key: string) => boolean;
}

export interface SpecInMember {
  /** The spec without terms that the virtual node meets: the member's nodes lack its labels. */
  readonly spec: PodSpec;
  readonly refusal?: string;
  /** Sum of the weights of matching preferred terms that concern the virtual node alone. */
  readonly weight: number;
}

/** Keeps the host's scheduler off virtual nodes; it does not concern members. */
const AWAY = "DoesNotExist";

const NAME_ALONE: Labels = { [VIRTUAL_NODE_LABEL]: "" };

/** Returns the virtual nodes that the pod's node selector and affinity name, if any. */
export function virtualNodeWish({ spec }: Pod): VirtualNodeWish | undefined {
  const { nodeSelector, affinity } = namedByLabel(spec ?? { containers: [] });
  const selected = nodeSelector?.[VIRTUAL_NODE_LABEL];
  const { required } = termsOf(affinity?.nodeAffinity);
  const wish = {
    ...(selected === undefined ? {} : { selected }),
    ...(required.some(isAbout(NAME_ALONE))
      ? { required: alternatives(required).map((term) => expressionsOver(NAME_ALONE, term)) }
      : {}),
  };
  return Object.keys(wish).length === 0 ? undefined : wish;
}

/** A constraint without a selector counts no pods. */
export function virtualNodeSpread({ metadata, spec }: Pod): ClusterSpread[] {
  return (spec?.topologySpreadConstraints ?? []).filter(isOverVirtualNodes).flatMap((constraint) => {
    const { labelSelector, matchLabelKeys = [], nodeAffinityPolicy = "Honor", ...others } = constraint;
    if (labelSelector === undefined) return [];
    const selector = withMergedKeys(labelSelector, matchLabelKeys, metadata?.labels ?? {});
    return [{ ...others, nodeAffinityPolicy, labelSelector: selector } as ClusterSpread];
  });
}

/** Returns the same object if the spec names no virtual nodes. */
export function specForNodesOf(member: MemberLabels, spec: PodSpec): PodSpec {
  return specInMember(member, spec).spec;
}

/** Judges a member by the pod's terms about virtual nodes, and removes them from the spec. */
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

/** Returns the member's name, and labels that none of its nodes has. */
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

/** Splits the node selector. Unmet requirements stay: no node of the member meets them either. */
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
  const speaks = isAbout(labels);
  if (nodeAffinity === undefined || ![...required, ...preferred.map(({ preference }) => preference)].some(speaks)) {
    return { weight: 0, changed: false, ...(nodeAffinity === undefined ? {} : { nodeAffinity }) };
  }
  const saysNothingElse = (term: NodeSelectorTerm): boolean =>
    speaks(term) && isEmptyTerm(withoutTermsOver(labels, term));
  const all = alternatives(required);
  const matching = all.filter((term) => unmetKey(labels, term) === undefined);
  // Affinity is not checked again once a pod is placed, so such a pod keeps its terms.
  const terms = matching.length === 0 ? all : matching;
  const matched = preferred.filter(({ preference }) => unmetKey(labels, preference) === undefined);
  const kept = matched.filter(({ preference }) => !saysNothingElse(preference));
  const own = withTerms(nodeAffinity, {
    // A term with nothing else matches every node.
    required: terms.some(saysNothingElse) ? [] : terms.map((term) => withoutTermsOver(labels, term)),
    preferred: kept.map((wish) => ({ ...wish, preference: withoutTermsOver(labels, wish.preference) })),
  });
  const [refused] = matching.length === 0 ? all.flatMap((term) => unmetKey(labels, term) ?? []) : [];
  const weight = matched
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

/** If one term names virtual nodes, empty and excluding terms are left out. */
function alternatives(terms: readonly NodeSelectorTerm[]): readonly NodeSelectorTerm[] {
  return terms.some(isAbout(NAME_ALONE)) ? terms.filter((term) => !isEmptyTerm(term) && !keepsAway(term)) : terms;
}

function keepsAway(term: NodeSelectorTerm): boolean {
  const { matchExpressions = [] } = term;
  return (
    !isAbout(NAME_ALONE)(term) &&
    matchExpressions.some(({ key, operator }) => key === VIRTUAL_NODE_LABEL && operator === AWAY)
  );
}

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

function isAbout(labels: Labels): (term: NodeSelectorTerm) => boolean {
  return (term) => expressionsOver(labels, term).length > 0;
}

function unmetKey(labels: Labels, term: NodeSelectorTerm): string | undefined {
  return expressionsOver(labels, term).find((expression) => !selectorMatches([requirementOf(expression)], labels))?.key;
}

function withoutTermsOver(labels: Labels, term: NodeSelectorTerm): NodeSelectorTerm {
  const { matchExpressions, ...others } = term;
  const kept = matchExpressions?.filter((expression) => !isOver(labels, expression)) ?? [];
  return kept.length === 0 ? others : { ...others, matchExpressions: kept };
}
