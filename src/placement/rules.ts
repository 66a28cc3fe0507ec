import { placementExcludes, type RequestedPlacement } from "../api/annotations.ts";
import { affinityWeight } from "../api/cluster-affinity.ts";
import type { ClusterSpread } from "../api/cluster-spread.ts";
import { CLUSTER_AFFINITY_ANNOTATION, CLUSTER_SPREAD_ANNOTATION } from "../api/keys.ts";
import type { Pod, Stored, Taint } from "../api/kubernetes.ts";
import { selectorOf } from "../api/label-expressions.ts";
import { selectorMatches } from "../api/label-selector.ts";
import { type Amounts, exceeds, isWithin } from "../api/quantity.ts";
import { isTolerated, repellingTaint, taintText } from "../pods/scheduling.ts";
import type { Candidate, Rule } from "./candidate.ts";
import type { InMember, PodInMember } from "./in-member.ts";
import { NOT_SELECTED, type NodeFit, type NodeRequirements, nodeRequirements } from "./node-fit.ts";
import {
  gangWaitsIn,
  groupFollows,
  groupIsIn,
  groupMayBeIn,
  noNodeMatches,
  noNodeSelected,
  noNodeTakes,
  noRoomForGang,
  notPermitted,
  overLimit,
  tainted,
  tooLargeForAllowedNodes,
  tooLargeForOneNode,
  type Why,
} from "./refusal-messages.ts";
import { spreadRule } from "./spread.ts";

/** Facts of a pod by which rules judge members. */
export interface RuleFacts {
  readonly pod: Stored<Pod>;
  readonly inMember: InMember;
  readonly placement: RequestedPlacement;
  readonly namespaceLabels: Readonly<Record<string, string>>;
  /** All members, for spread constraints; none without any. */
  readonly candidates: readonly Candidate[];
  /** Counts other pods by member. */
  readonly spreadCounts: (spread: ClusterSpread) => ReadonlyMap<string, number>;
}

/** These only refuse. docs/development.md says how to add a rule. */
export function policyRules({ pod, inMember, namespaceLabels }: RuleFacts): Rule[] {
  return [
    permissionRule(pod.metadata.namespace ?? "", namespaceLabels),
    limitRule(pod, inMember),
    { filter: (candidate) => taintRefusal(pod, candidate) },
    nodeRule(inMember),
  ];
}

export function placementRules(facts: RuleFacts): Rule[] {
  const { pod, inMember, placement } = facts;
  const { affinity, spread = [] } = placement;
  return [
    {
      concern: "taints of effect PreferNoSchedule",
      score: ({ taints = [] }) => -taints.filter((taint) => isAvoided(taint, pod)).length,
    },
    ...(affinity === undefined
      ? []
      : [
          {
            concern: CLUSTER_AFFINITY_ANNOTATION,
            score: (candidate: Candidate) => affinityWeight(affinity, candidate),
          },
        ]),
    ...(pod.spec?.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution === undefined
      ? []
      : [{ concern: "nodeAffinity", score: (candidate: Candidate) => inMember(candidate).weight }]),
    ...spread.map((constraint) => spreadRuleFor(constraint, facts)),
  ];
}

function permissionRule(namespace: string, labels: Readonly<Record<string, string>>): Rule {
  return {
    filter: ({ admits }) =>
      admits === undefined || selectorMatches(admits, labels) ? undefined : notPermitted(namespace),
  };
}

function limitRule(pod: Stored<Pod>, inMember: InMember): Rule {
  const { namespace = "", uid } = pod.metadata;
  return {
    filter: (candidate) => {
      const { limits, used, usedIn, reservedFor } = candidate;
      if (limits === undefined) return undefined;
      const wanted = inMember(candidate);
      const reserved = reservedFor?.(uid) ?? {};
      return (
        excess(wanted, { limits: limits.total, used: usedIn?.() ?? used, reserved }) ??
        excess(wanted, { limits: limits.perNamespace, used: usedIn?.(namespace) ?? {}, reserved, namespace })
      );
    },
  };
}

interface Limited {
  readonly limits: Amounts;
  readonly used: Amounts;
  /** The part of `used` that is reserved for the pod itself. */
  readonly reserved: Amounts;
  readonly namespace?: string;
}

function excess({ requests, mutation }: PodInMember, { limits, used, reserved, ...of }: Limited): Why | undefined {
  for (const resource in limits) {
    const wanted = requests[resource] ?? 0;
    const limit = limits[resource] ?? 0;
    const left = limit - ((used[resource] ?? 0) - (reserved[resource] ?? 0));
    if (wanted > 0 && exceeds(wanted, left)) return overLimit({ resource, wanted, mutation, left, limit, ...of });
  }
  return undefined;
}

export function taintRefusal({ spec }: Pod, { taints = [] }: Candidate): Why | undefined {
  const taint = repellingTaint(taints, spec?.tolerations ?? []);
  return taint === undefined ? undefined : tainted(taintText(taint));
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
    filter: (candidate) => {
      const { largestNode, deviceResources } = candidate;
      const { requests, mutation, refusal } = inMember(candidate);
      if (refusal !== undefined) return noNodeMatches(refusal);
      const fit = fitIn(inMember, candidate);
      if (fit === undefined || fit.large || fit.nodes === 0) return undefined;
      if (fit.tolerated === 0) return noneOf(fit);
      for (const resource in requests) {
        if (deviceResources?.has(resource)) continue;
        const wanted = requests[resource] ?? 0;
        const largest = fit.largest[resource] ?? 0;
        // A pod that is larger than any node is refused by `rank`, with the nodes' sizes.
        if (!exceeds(wanted, largest) || exceeds(wanted, largestNode[resource] ?? 0)) continue;
        return tooLargeForAllowedNodes({ resource, wanted, mutation, largest });
      }
      return isWithin(requests, largestNode) ? tooLargeForOneNode() : undefined;
    },
  };
}

// Cached: several rules ask for each member.
const needs = new WeakMap<PodInMember, NodeRequirements>();

/** Returns undefined if not known. */
function fitIn(inMember: InMember, candidate: Candidate): NodeFit | undefined {
  const seen = inMember(candidate);
  const wanted = needs.get(seen) ?? nodeRequirements(seen.pod, seen.requests, candidate.deviceResources);
  needs.set(seen, wanted);
  return candidate.nodesFor?.(wanted);
}

/** Reports whether the pod can go to no node. Closed and tainted nodes count, unless taints are honored. */
function hasNone(fit: NodeFit | undefined, taints: "Honor" | "Ignore"): boolean {
  if (fit === undefined || fit.nodes === 0) return false;
  return taints === "Honor" ? fit.tolerated === 0 : fit.against.get(NOT_SELECTED) === fit.nodes;
}

function noneOf({ nodes, against }: NodeFit): Why {
  return against.get(NOT_SELECTED) === nodes ? noNodeSelected(nodes) : noNodeTakes(nodes, against);
}

/** Pods of a gang that have no node yet, and start together. */
export interface Gang {
  readonly requests: Amounts;
  /** The part of those that have a delegate in a member, or are about to. */
  readonly in: ReadonlyMap<string, Amounts>;
}

export interface GroupFacts {
  readonly text: string;
  readonly gang?: Gang;
  readonly home?: string;
  /** `namespace/name` of the pod that finds a place for the group. */
  readonly first?: string;
  /** Members that may have pods of the group and were not read yet. */
  readonly unread: readonly string[];
}

/** Sends all pods of a group to one member. Until it is known, one pod alone looks for it. */
export function groupRule(facts: GroupFacts): Rule {
  const { text, home, first, unread, gang } = facts;
  return {
    filter: (candidate) => {
      const { name } = candidate;
      if (name === home) return undefined;
      if (home !== undefined && gang !== undefined) return gangShortage(facts, candidate) ?? gangWaitsIn(text, home);
      if (home !== undefined) return groupIsIn(text, home);
      if (first !== undefined) return groupFollows(text, first);
      return unread.length === 0 ? undefined : groupMayBeIn(text, unread);
    },
  };
}

/** Returns why a member has no room for all pods of a gang; undefined if it has, or the pod is of none. */
export function gangShortage({ text, gang }: Pick<GroupFacts, "text" | "gang">, candidate: Candidate): Why | undefined {
  if (gang === undefined) return undefined;
  const { name, allocatable, used } = candidate;
  const own = gang.in.get(name) ?? {};
  for (const resource in gang.requests) {
    const wanted = gang.requests[resource] ?? 0;
    const left = (allocatable[resource] ?? 0) - (used[resource] ?? 0) + (own[resource] ?? 0);
    if (exceeds(wanted, left)) return noRoomForGang(text, { resource, wanted, left });
  }
  return undefined;
}
