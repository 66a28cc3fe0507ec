import { jsonEqual } from "../api/json.ts";
import type { Pod, PodCondition, Stored } from "../api/kubernetes.ts";
import { recordOf } from "./forward-record.ts";
import { isTerminal } from "./pod-state.ts";
import { otherConditions } from "./readiness-gates.ts";

// Bounds the record: a member may report as many as an object of 16 MiB holds.
const MOST_FOLLOWED = 100;

/** Conditions that neither kubelets nor openers of readiness gates write. */
export interface FollowedConditions {
  readonly isHosts: (type: string) => boolean;
  /** Types that the proxy has from its delegate and that the delegate no longer has. */
  readonly withdrawn: readonly string[];
}

/** A type on both sides belongs to the side that had it first. `isNews`: the record differs. */
export function conditionsToRecord(
  proxy: Pod,
  delegate: Stored<Pod>,
): { readonly conditions: readonly string[]; readonly isNews: boolean } {
  const recorded = recordedOn(proxy, delegate);
  const reported = typesOf(delegate);
  const isOther = otherConditions(proxy);
  if (recorded === undefined) {
    const conditions = [...reported].filter(isOther).slice(0, MOST_FOLLOWED);
    return { conditions, isNews: conditions.length > 0 };
  }
  const ours = typesOf(proxy);
  const earlier = new Set(recorded);
  const conditions = [...new Set([...recorded, ...reported])]
    .filter((type) => isOther(type) && (earlier.has(type) ? ours.has(type) || reported.has(type) : !ours.has(type)))
    .slice(0, MOST_FOLLOWED);
  return { conditions, isNews: !jsonEqual(conditions, recorded) };
}

/** `gone`: the record will not change any more. */
export function followedConditions(proxy: Pod, delegate: Stored<Pod>, gone: boolean): FollowedConditions {
  const recorded = recordedOn(proxy, delegate) ?? [];
  const isLast = gone || isTerminal(delegate);
  const followed = new Set(isLast ? conditionsToRecord(proxy, delegate).conditions : recorded);
  const isOther = otherConditions(proxy);
  const reported = typesOf(delegate);
  return {
    isHosts: (type) => isOther(type) && !followed.has(type),
    // A terminal delegate's record is final, so new conditions of the proxy may be the host's.
    withdrawn: isTerminal(proxy) ? [] : recorded.filter((type) => isOther(type) && !reported.has(type)),
  };
}

export function conditionsWithout(proxy: Pod, departed: Stored<Pod>): PodCondition[] {
  const followed = new Set(recordedOn(proxy, departed) ?? typesOf(departed));
  const isOther = otherConditions(proxy);
  return (proxy.status?.conditions ?? []).filter(({ type }) => !isOther(type) || !followed.has(type));
}

/** Returns undefined if an earlier version wrote the record. */
function recordedOn(proxy: Pod, delegate: Stored<Pod>): readonly string[] | undefined {
  return recordOf(proxy, delegate).conditions?.slice(0, MOST_FOLLOWED);
}

function typesOf({ status }: Pod): ReadonlySet<string> {
  return new Set(status?.conditions?.map(({ type }) => type));
}
