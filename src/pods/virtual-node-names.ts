import { clusterOfNode, VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { NodeSelectorTerm, PodSpec } from "../api/kubernetes.ts";

type Expression = NonNullable<NodeSelectorTerm["matchExpressions"]>[number];

const HOSTNAME = "kubernetes.io/hostname";
const NAME_FIELD = "metadata.name";

/** The prefix `legation-` is reserved. Returns the same object if no virtual node is named. */
export function namedByLabel(spec: PodSpec): PodSpec {
  const nodeSelector = selectorByLabel(spec.nodeSelector);
  const { nodeAffinity } = spec.affinity ?? {};
  const { required, preferred } = termsOf(nodeAffinity);
  const isNamed =
    nodeSelector !== spec.nodeSelector ||
    [...required, ...preferred.map(({ preference }) => preference)].some(namesVirtualNode);
  if (!isNamed) return spec;
  const own = withTerms(nodeAffinity ?? {}, {
    required: required.flatMap(alternativesByLabel),
    preferred: preferred.flatMap((wish) =>
      alternativesByLabel(wish.preference).map((preference) => ({ ...wish, preference })),
    ),
  });
  return {
    ...spec,
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...(nodeAffinity === undefined ? {} : { affinity: { ...spec.affinity, nodeAffinity: own } }),
  };
}

export type NodeAffinity = NonNullable<NonNullable<PodSpec["affinity"]>["nodeAffinity"]>;

/** The terms of a node affinity under shorter names. */
interface Terms {
  readonly required: readonly NodeSelectorTerm[];
  readonly preferred: readonly NonNullable<NodeAffinity["preferredDuringSchedulingIgnoredDuringExecution"]>[number][];
}

export function termsOf(nodeAffinity: NodeAffinity | undefined): Terms {
  return {
    required: nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [],
    preferred: nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? [],
  };
}

/** Returns the node affinity with these terms in place of its own. A field without terms is left out. */
export function withTerms(nodeAffinity: NodeAffinity, { required, preferred }: Terms): NodeAffinity {
  const {
    requiredDuringSchedulingIgnoredDuringExecution: _required,
    preferredDuringSchedulingIgnoredDuringExecution: _preferred,
    ...others
  } = nodeAffinity;
  return {
    ...others,
    ...(required.length === 0
      ? {}
      : { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [...required] } }),
    ...(preferred.length === 0 ? {} : { preferredDuringSchedulingIgnoredDuringExecution: [...preferred] }),
  };
}

function selectorByLabel(selector: PodSpec["nodeSelector"]): PodSpec["nodeSelector"] {
  const { [HOSTNAME]: hostname, ...others } = selector ?? {};
  const cluster = clusterOfNode(hostname);
  // Two different members match no node; the member's scheduler says so.
  if (cluster === undefined || (others[VIRTUAL_NODE_LABEL] ?? cluster) !== cluster) return selector;
  return { ...others, [VIRTUAL_NODE_LABEL]: cluster };
}

function namesVirtualNode({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): boolean {
  const isName = (expression: Expression, key: string): boolean =>
    expression.key === key && (expression.values ?? []).some((name) => clusterOfNode(name) !== undefined);
  return (
    matchExpressions.some((expression) => isName(expression, HOSTNAME)) ||
    matchFields.some((field) => isName(field, NAME_FIELD))
  );
}

/** Names of virtual nodes and other names become two alternatives. */
function alternativesByLabel(term: NodeSelectorTerm): NodeSelectorTerm[] {
  if (!namesVirtualNode(term)) return [term];
  const { matchExpressions = [], matchFields = [], ...others } = term;
  const fields = matchFields.flatMap((field) => (field.key === NAME_FIELD ? partsOf(field) : [{ own: field }]));
  const expressions = matchExpressions.flatMap((expression) =>
    expression.key === HOSTNAME ? partsOf(expression) : [{ own: expression }],
  );
  const virtual = [...fields, ...expressions].flatMap(({ virtual: named }) => named ?? []);
  const build = (ownFields: readonly Part[], ownExpressions: readonly Part[], labels: readonly Expression[]) => {
    const kept = [...ownExpressions.flatMap(({ own }) => own ?? []), ...labels];
    const keptFields = ownFields.flatMap(({ own }) => own ?? []);
    return {
      ...others,
      ...(kept.length === 0 ? {} : { matchExpressions: kept }),
      ...(keptFields.length === 0 ? {} : { matchFields: keptFields }),
    };
  };
  const isChoice = ({ own, virtual: named }: Part): boolean =>
    own !== undefined && named !== undefined && own.operator === "In";
  const withoutChoices = (parts: readonly Part[]): Part[] => parts.filter((part) => !isChoice(part));
  const onVirtualNode = build(withoutChoices(fields), withoutChoices(expressions), virtual);
  if (![...fields, ...expressions].some(isChoice)) return [onVirtualNode];
  const certain = withoutChoices([...fields, ...expressions]).flatMap(({ virtual: named }) => named ?? []);
  return [onVirtualNode, build(fields, expressions, certain)];
}

interface Part {
  readonly own?: Expression;
  readonly virtual?: Expression;
}

function partsOf(expression: Expression): Part[] {
  const { operator, values = [] } = expression;
  const clusters = values.flatMap((name) => clusterOfNode(name) ?? []);
  if ((operator !== "In" && operator !== "NotIn") || clusters.length === 0) return [{ own: expression }];
  const others = values.filter((name) => clusterOfNode(name) === undefined);
  const virtual = { key: VIRTUAL_NODE_LABEL, operator, values: clusters };
  return [others.length === 0 ? { virtual } : { virtual, own: { ...expression, values: others } }];
}
