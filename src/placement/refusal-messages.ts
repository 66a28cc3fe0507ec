import { PREFERENCES_ANNOTATION } from "../api/keys.ts";
import { writeQuantity } from "../api/quantity.ts";
import { counted } from "../api/wording.ts";
import type { Refusal } from "./candidate.ts";
import type { MutatedBy, RequestMutation } from "./requests.ts";

export type Why = Pick<Refusal, "reason" | "message" | "dedupe">;

interface Shortage {
  readonly resource: string;
  readonly wanted: number;
  readonly mutation?: RequestMutation | undefined;
}

const MUTATED_BY: Readonly<Record<MutatedBy, string>> = {
  LimitRange: "by the LimitRange of the namespace",
  RuntimeClass: "with the overhead of its RuntimeClass",
  Admission: "by the member's admission",
};

// `dedupe` leaves out the amounts: they change with each pod that comes or goes.

export function notEnoughLeft({ left, ...of }: Shortage & { readonly left: number }): Why {
  const { resource } = of;
  const message = `${resource}: ${requested(of)}, ${shown(resource, Math.max(0, left))} left`;
  return { reason: "Full", message, dedupe: resource };
}

/** `gang`: its pods, which request this together. */
export function noRoomForGang(gang: string, { left, ...of }: Shortage & { readonly left: number }): Why {
  const { resource } = of;
  const message = `${resource}: ${requested(of)} by ${gang} together, ${shown(resource, Math.max(0, left))} left`;
  return { reason: "NoRoomForGang", message, dedupe: resource };
}

export function tooLarge({ largest, ...of }: Shortage & { readonly largest: number }): Why {
  const { resource } = of;
  if (largest === 0) return { reason: "TooLarge", message: `no schedulable node offers ${resource}` };
  const has = `the largest node has ${shown(resource, largest)}`;
  return { reason: "TooLarge", message: `${resource}: ${requested(of)}, ${has}`, dedupe: resource };
}

export function tooLargeForAllowedNodes({ largest, ...of }: Shortage & { readonly largest: number }): Why {
  const { resource } = of;
  const has = `the largest node that the pod may go to has ${shown(resource, largest)}`;
  const message = `${resource}: ${requested(of)}, ${has}`;
  return { reason: "TooLarge", message, dedupe: `${resource} on allowed nodes` };
}

export function tooLargeForOneNode(): Why {
  return { reason: "TooLarge", message: "no one node has all that is requested" };
}

/** `namespace`: the limit is of this namespace. Absent: it is of all namespaces together. */
export function overLimit({
  left,
  limit,
  namespace,
  ...of
}: Shortage & { readonly left: number; readonly limit: number; readonly namespace?: string }): Why {
  const { resource } = of;
  const what = namespace === undefined ? "its limit" : `its limit for namespace ${namespace}`;
  const rest = `${shown(resource, Math.max(0, left))} of ${shown(resource, limit)} left`;
  const message = `${what} of ${resource}: ${requested(of)}, ${rest}`;
  return { reason: "OverLimit", message, dedupe: `${what} of ${resource}` };
}

export function notPermitted(namespace: string): Why {
  return { reason: "NotPermitted", message: `its namespaceSelector does not admit namespace ${namespace}` };
}

export function tainted(taint: string): Why {
  return { reason: "Tainted", message: `the pod does not tolerate its taint ${taint}` };
}

export function noNodeSelected(nodes: number): Why {
  const message = `none of its ${counted(nodes, "node")} is one that the pod selects`;
  return { reason: "NoNodeMatches", message, dedupe: "not selected" };
}

/** `against`: how many nodes do not take the pod, by reason, as kube-scheduler counts them. */
export function noNodeTakes(nodes: number, against: ReadonlyMap<string, number>): Why {
  const reasons = [...against].sort(([a, some], [b, more]) => more - some || (a < b ? -1 : 1));
  const counts = reasons.map(([reason, count]) => `${count} ${reason}`).join(", ");
  const message = `none of its ${counted(nodes, "node")} takes the pod: ${counts}`;
  return { reason: "NoNodeMatches", message, dedupe: [...against.keys()].sort().join(", ") };
}

export function noNodeMatches(message: string): Why {
  return { reason: "NoNodeMatches", message };
}

export function noTopology(topologyKey: string): Why {
  return { reason: "Spread", message: `has no label ${topologyKey} to spread over` };
}

export function skewed({
  topologyKey,
  value,
  ...counts
}: {
  readonly topologyKey: string;
  readonly value: string;
  readonly pods: number;
  readonly fewest: number;
  readonly maxSkew: number;
}): Why {
  const { pods, fewest, maxSkew } = counts;
  const ahead = `${topologyKey}=${value} has ${pods}, the fewest is ${fewest}, and maxSkew is ${maxSkew}`;
  return { reason: "Spread", message: `one more pod would be too many: ${ahead}`, dedupe: `${topologyKey}=${value}` };
}

export function groupIsIn(group: string, home: string): Why {
  return { reason: "OtherGroup", message: `${group} runs in ${home}` };
}

export function gangWaitsIn(gang: string, member: string): Why {
  return { reason: "OtherGroup", message: `${gang} wait together in ${member}` };
}

export function gangLeaves(gang: string, members: readonly string[]): Why {
  return { reason: "OtherGroup", message: `${gang} have to leave ${members.join(" and ")} first` };
}

export function groupFollows(group: string, first: string): Why {
  return { reason: "OtherGroup", message: `${group} goes where pod ${first} finds a place first` };
}

export function groupMayBeIn(group: string, unread: readonly string[]): Why {
  return {
    reason: "OtherGroup",
    message: `${group} may be in ${unread.join(" or ")}, which has not answered yet`,
  };
}

export function notPreferred(): Why {
  return { reason: "NotPreferred", message: `${PREFERENCES_ANNOTATION} does not name it` };
}

export function maxReplicasReached(replicas: number): Why {
  return { reason: "NotPreferred", message: `has ${replicas} of them, its maxReplicas`, dedupe: "maxReplicas" };
}

export function weightIsZero(minReplicas: number): Why {
  const message =
    minReplicas === 0
      ? `its weight in ${PREFERENCES_ANNOTATION} is 0`
      : `has its minReplicas of ${minReplicas}, and its weight is 0`;
  return { reason: "NotPreferred", message };
}

/** Returns what the pod requests of some resources in a member that changed its requests; undefined if it changed none of them. */
export function mutatedRequests(
  { requests, by }: RequestMutation,
  concerns: (resource: string) => boolean,
): string | undefined {
  const changed = Object.keys(by).filter(concerns).sort();
  if (changed.length === 0) return undefined;
  const parts = changed.map(
    (resource) =>
      `${resource}: ${requested({ resource, wanted: requests[resource] ?? 0, mutation: { requests, by } })}`,
  );
  return parts.join(", ");
}

function requested({ resource, wanted, mutation }: Shortage): string {
  const by = mutation?.by[resource];
  return `${shown(resource, wanted)} requested${by === undefined ? "" : ` there ${MUTATED_BY[by]}`}`;
}

function shown(resource: string, amount: number): string {
  return writeQuantity(resource, amount);
}
