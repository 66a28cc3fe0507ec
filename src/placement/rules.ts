import { type Placement, placementExcludes } from "../api/annotations.ts";
import { affinityWeight } from "../api/cluster-affinity.ts";
import type { ClusterSpread } from "../api/cluster-spread.ts";
import { CLUSTER_AFFINITY_ANNOTATION, CLUSTER_SPREAD_ANNOTATION } from "../api/keys.ts";
import type { Pod, Stored, Taint } from "../api/kubernetes.ts";
import { selectorOf } from "../api/label-expressions.ts";
import { selectorMatches } from "../api/label-selector.ts";
import { type Amounts, exceeds, isWithin, writeQuantity } from "../api/quantity.ts";
import { isTolerated, repellingTaint, taintText } from "../pods/tolerations.ts";
import type { Candidate, Refusal, Rule } from "./candidate.ts";
import type { InMember, PodInMember } from "./in-member.ts";
import { NOT_SELECTED, type NodeFit, type NodeNeeds, nodeNeeds } from "./node-fit.ts";
import { spreadRule } from "./spread.ts";

type Refused = Pick<Refusal, "reason" | "message">;

/** Everything about a pod that rules judge members by. */
export interface RuleFacts {
  readonly pod: Stored<Pod>;
  /** The pod as its overrides make it. */
  readonly inMember: InMember;
  readonly placement: Placement;
  /** Labels of the pod's namespace. */
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly candidates: readonly Candidate[];
  /** Pods of the namespace that a constraint counts, without this one, by member. */
  readonly spreadCounts: (spread: ClusterSpread) => ReadonlyMap<string, number>;
}

/** What operators forbid and nodes cannot do, whatever the author prefers: without costs. */
export function policyRules({ pod, inMember, namespaceLabels }: RuleFacts): Rule[] {
  return [
    permissionRule(pod.metadata.namespace ?? "", namespaceLabels),
    limitRule(pod, inMember),
    { refusal: (candidate) => taintRefusal(pod, candidate) },
    nodeRule(inMember),
  ];
}

/** What authors say of a pod's place beside names and selectors, and what taints say of members that are better avoided. */
export function placementRules(facts: RuleFacts): Rule[] {
  const { pod, inMember, placement } = facts;
  const { affinity, spread = [] } = placement;
  return [
    {
      concern: "taints of effect PreferNoSchedule",
      cost: ({ taints = [] }) => taints.filter((taint) => isAvoided(taint, pod)).length,
    },
    ...(affinity === undefined
      ? []
      : [
          {
            concern: CLUSTER_AFFINITY_ANNOTATION,
            cost: (candidate: Candidate) => -affinityWeight(affinity, candidate),
          },
        ]),
    ...(pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution === undefined
      ? []
      : [{ concern: "nodeAffinity", cost: (candidate: Candidate) => -inMember(candidate).weight }]),
    ...spread.map((constraint) => spreadRuleFor(constraint, facts)),
  ];
}

/** Only namespaces that the Cluster admits, whatever the author writes. */
function permissionRule(namespace: string, labels: Readonly<Record<string, string>>): Rule {
  return {
    refusal: ({ admits }) =>
      admits === undefined || selectorMatches(admits, labels)
        ? undefined
        : { reason: "NotPermitted", message: `its namespaceSelector does not admit namespace ${namespace}` },
  };
}

function limitRule(pod: Stored<Pod>, inMember: InMember): Rule {
  const { namespace = "", uid } = pod.metadata;
  return {
    refusal: (candidate) => {
      const { limits, used, usedIn, keptFor } = candidate;
      if (limits === undefined) return undefined;
      const { requests } = inMember(candidate);
      const kept = keptFor?.(uid) ?? {};
      const message =
        excess(requests, limits.total, usedIn?.() ?? used, kept, "its limit") ??
        excess(requests, limits.perNamespace, usedIn?.(namespace) ?? {}, kept, `its limit for namespace ${namespace}`);
      return message === undefined ? undefined : { reason: "OverLimit", message };
    },
  };
}

function excess(requests: Amounts, limits: Amounts, used: Amounts, kept: Amounts, what: string): string | undefined {
  for (const resource in limits) {
    const wanted = requests[resource] ?? 0;
    const limit = limits[resource] ?? 0;
    const left = limit - ((used[resource] ?? 0) - (kept[resource] ?? 0));
    if (wanted === 0 || !exceeds(wanted, left)) continue;
    const shown = (value: number): string => writeQuantity(resource, value);
    return `${what} of ${resource}: ${shown(wanted)} requested, ${shown(Math.max(0, left))} of ${shown(limit)} left`;
  }
  return undefined;
}

/** Why the pod may not go to the member: a taint of its Cluster, or of its virtual node, that it does not tolerate. */
export function taintRefusal({ spec }: Pod, { taints = [] }: Candidate): Refused | undefined {
  const taint = repellingTaint(taints, spec?.tolerations ?? []);
  if (taint === undefined) return undefined;
  return { reason: "Tainted", message: `the pod does not tolerate its taint ${taintText(taint)}` };
}

function isAvoided(taint: Taint, { spec }: Pod): boolean {
  return taint.effect === "PreferNoSchedule" && !isTolerated(taint, spec?.tolerations ?? []);
}

function spreadRuleFor(spread: ClusterSpread, facts: RuleFacts): Rule {
  const { pod, placement, namespaceLabels, candidates } = facts;
  const { labelSelector, nodeAffinityPolicy, nodeTaintsPolicy = "Ignore" } = spread;
  const tolerations = pod.spec?.tolerations ?? [];
  const eligible = candidates.filter((candidate) => {
    const { closed, taints = [], admits } = candidate;
    if (nodeAffinityPolicy !== "Ignore" && placementExcludes(placement, candidate) !== undefined) return false;
    const isSelected = facts.inMember(candidate).refusal === undefined;
    const hasNodes = !hasNone(fitIn(facts.inMember, candidate), nodeTaintsPolicy);
    if (nodeAffinityPolicy === "Honor" && !(isSelected && hasNodes)) return false;
    if (admits !== undefined && !selectorMatches(admits, namespaceLabels)) return false;
    if (nodeTaintsPolicy === "Ignore") return true;
    return closed === undefined && repellingTaint(taints, tolerations) === undefined;
  });
  const countsItself =
    labelSelector === undefined || selectorMatches(selectorOf(labelSelector), pod.metadata.labels ?? {});
  return {
    concern: CLUSTER_SPREAD_ANNOTATION,
    ...spreadRule({ spread, counts: facts.spreadCounts(spread), countsItself, eligible }),
  };
}

/** The pod's node selector, required node affinity and tolerations against the member's virtual node and its own nodes. */
function nodeRule(inMember: InMember): Rule {
  return {
    refusal: (candidate) => {
      const { largestNode } = candidate;
      const { requests, refusal } = inMember(candidate);
      if (refusal !== undefined) return { reason: "NoNodeMatches", message: refusal };
      const fit = fitIn(inMember, candidate);
      if (fit === undefined || fit.large || fit.nodes === 0) return undefined;
      if (fit.tolerated === 0) return { reason: "NoNodeMatches", message: noneOf(fit) };
      for (const resource in requests) {
        const wanted = requests[resource] ?? 0;
        const most = fit.largest[resource] ?? 0;
        // What no node at all has is said with the nodes' sizes.
        if (!exceeds(wanted, most) || exceeds(wanted, largestNode[resource] ?? 0)) continue;
        const shown = (value: number): string => writeQuantity(resource, value);
        const has = `the largest node that the pod may go to has ${shown(most)}`;
        return { reason: "TooLarge", message: `${resource}: ${shown(wanted)} requested, ${has}` };
      }
      const message = "no one node has all that is requested";
      return isWithin(requests, largestNode) ? { reason: "TooLarge", message } : undefined;
    },
  };
}

// Asked by several rules, for each member.
const needs = new WeakMap<PodInMember, NodeNeeds>();

/** What a member's nodes have for the pod; undefined: not known. */
function fitIn(inMember: InMember, candidate: Candidate): NodeFit | undefined {
  const seen = inMember(candidate);
  const wanted = needs.get(seen) ?? nodeNeeds(seen.pod, seen.requests);
  needs.set(seen, wanted);
  return candidate.nodesFor?.(wanted);
}

/** Whether the pod may go to none of the nodes; those that are closed or tainted are nodes all the same, unless that is honored, too. */
function hasNone(fit: NodeFit | undefined, taints: "Honor" | "Ignore"): boolean {
  if (fit === undefined || fit.nodes === 0) return false;
  return taints === "Honor" ? fit.tolerated === 0 : fit.against.get(NOT_SELECTED) === fit.nodes;
}

/** What is against each of the nodes, counted as kube-scheduler counts it. */
function noneOf({ nodes, against }: NodeFit): string {
  const all = nodes === 1 ? "1 node" : `${nodes} nodes`;
  if (against.get(NOT_SELECTED) === nodes) return `none of its ${all} is one that the pod selects`;
  const reasons = [...against].sort(([a, some], [b, more]) => more - some || (a < b ? -1 : 1));
  return `none of its ${all} takes the pod: ${reasons.map(([reason, count]) => `${count} ${reason}`).join(", ")}`;
}
