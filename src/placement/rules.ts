import { type Placement, placementExcludes } from "../api/annotations.ts";
import { affinityWeight } from "../api/cluster-affinity.ts";
import type { ClusterSpread } from "../api/cluster-spread.ts";
import { CLUSTER_AFFINITY_ANNOTATION, CLUSTER_SPREAD_ANNOTATION } from "../api/keys.ts";
import type { Pod, Stored, Taint } from "../api/kubernetes.ts";
import { selectorOf } from "../api/label-expressions.ts";
import { selectorMatches } from "../api/label-selector.ts";
import { type Amounts, exceeds, isWithin, writeQuantity } from "../api/quantity.ts";
import { isTolerated, repellingTaint, taintText } from "../pods/scheduling.ts";
import type { Candidate, Refusal, Rule } from "./candidate.ts";
import type { InMember, PodInMember } from "./in-member.ts";
import { NOT_SELECTED, type NodeFit, type NodeNeeds, nodeNeeds } from "./node-fit.ts";
import { spreadRule } from "./spread.ts";

type Refused = Pick<Refusal, "reason" | "message">;

/** Facts of a pod by which rules judge members. */
export interface RuleFacts {
  readonly pod: Stored<Pod>;
  /** The pod with a member's overrides. */
  readonly inMember: InMember;
  readonly placement: Placement;
  /** Labels of the pod's namespace. */
  readonly namespaceLabels: Readonly<Record<string, string>>;
  readonly candidates: readonly Candidate[];
  /** Pods that a constraint counts, by member, without this one. */
  readonly spreadCounts: (spread: ClusterSpread) => ReadonlyMap<string, number>;
}

/** Returns the rules of operators and nodes, which only refuse. */
export function policyRules({ pod, inMember, namespaceLabels }: RuleFacts): Rule[] {
  return [
    permissionRule(pod.metadata.namespace ?? "", namespaceLabels),
    limitRule(pod, inMember),
    { refusal: (candidate) => taintRefusal(pod, candidate) },
    nodeRule(inMember),
  ];
}

/** Returns the rules of authors, and of taints that members are avoided for. */
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

/** Admits only namespaces that the Cluster selects. */
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

/** Returns the refusal for an untolerated taint of the Cluster or its virtual node. */
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

/** Judges node selector, required affinity and tolerations against the virtual node and the member's nodes. */
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
        // A resource that no node has is reported with node sizes.
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

// Cached: several rules ask for each member.
const needs = new WeakMap<PodInMember, NodeNeeds>();

/** Returns the judgement of a member's nodes. Undefined if not known. */
function fitIn(inMember: InMember, candidate: Candidate): NodeFit | undefined {
  const seen = inMember(candidate);
  const wanted = needs.get(seen) ?? nodeNeeds(seen.pod, seen.requests);
  needs.set(seen, wanted);
  return candidate.nodesFor?.(wanted);
}

/** Reports whether the pod can go to no node. Closed and tainted nodes count, unless taints are honored. */
function hasNone(fit: NodeFit | undefined, taints: "Honor" | "Ignore"): boolean {
  if (fit === undefined || fit.nodes === 0) return false;
  return taints === "Honor" ? fit.tolerated === 0 : fit.against.get(NOT_SELECTED) === fit.nodes;
}

/** Formats why nodes do not fit, as kube-scheduler does. */
function noneOf({ nodes, against }: NodeFit): string {
  const all = nodes === 1 ? "1 node" : `${nodes} nodes`;
  if (against.get(NOT_SELECTED) === nodes) return `none of its ${all} is one that the pod selects`;
  const reasons = [...against].sort(([a, some], [b, more]) => more - some || (a < b ? -1 : 1));
  return `none of its ${all} takes the pod: ${reasons.map(([reason, count]) => `${count} ${reason}`).join(", ")}`;
}

/** The state of a pod's group. */
export interface GroupFacts {
  /** The group, for people. */
  readonly text: string;
  readonly home?: string;
  /** `namespace/name` of the pod that finds a place for the group. */
  readonly first?: string;
  /** Members that may have pods of the group and were not read yet. */
  readonly unread: readonly string[];
}

/** Sends all pods of a group to one member. Until it is known, one pod alone looks for it. */
export function groupRule({ text, home, first, unread }: GroupFacts): Rule {
  return {
    refusal: ({ name }) => {
      if (home !== undefined) {
        return name === home ? undefined : { reason: "OtherGroup", message: `${text} runs in ${home}` };
      }
      if (first !== undefined) {
        return { reason: "OtherGroup", message: `${text} goes where pod ${first} finds a place first` };
      }
      return unread.length === 0
        ? undefined
        : { reason: "OtherGroup", message: `${text} may be in ${unread.join(" or ")}, which has not answered yet` };
    },
  };
}
