import { FORWARDED_ANNOTATION } from "../api/keys.ts";
import type { Pod, PodCondition, Stored } from "../api/kubernetes.ts";
import { jsonEqual } from "./equal.ts";
import { readRecord } from "./forwarded.ts";
import { isTerminal } from "./phase.ts";
import { anybodys } from "./readiness.ts";

// More than controllers set on one pod. A member may tell as many as an object of 16 MiB has room for.
const MOST_FOLLOWED = 100;

/** Whose conditions that neither kubelets nor gates' openers write are, of a proxy that has a delegate. */
export interface FollowedConditions {
  /** What the proxy has of this type stays, whatever the delegate says. */
  readonly isHosts: (type: string) => boolean;
  /** Types of conditions that the proxy has from its delegate, which has them no more. */
  readonly withdrawn: readonly string[];
}

/**
 * What is to be on the delegate's record: types of conditions that the proxy has or is to have from it, 100 at most. One that both clusters have is
 * whose it was first; beside a record of an earlier version, which copied all of them, it is the delegate's. `isNews`: the record does not say so yet.
 */
export function conditionsToRecord(
  proxy: Pod,
  delegate: Stored<Pod>,
): { readonly conditions: readonly string[]; readonly isNews: boolean } {
  const recorded = recordedOn(delegate);
  const told = typesOf(delegate);
  const isAnybodys = anybodys(proxy);
  if (recorded === undefined) {
    const conditions = [...told].filter(isAnybodys).slice(0, MOST_FOLLOWED);
    return { conditions, isNews: conditions.length > 0 };
  }
  const ours = typesOf(proxy);
  const earlier = new Set(recorded);
  const conditions = [...new Set([...recorded, ...told])]
    .filter((type) => isAnybodys(type) && (earlier.has(type) ? ours.has(type) || told.has(type) : !ours.has(type)))
    .slice(0, MOST_FOLLOWED);
  return { conditions, isNews: !jsonEqual(conditions, recorded) };
}

/** Whose conditions the proxy shows now: those on record are the delegate's. `gone`: nothing more will be put on record. */
export function followedConditions(proxy: Pod, delegate: Stored<Pod>, gone: boolean): FollowedConditions {
  const recorded = recordedOn(delegate) ?? [];
  const isLast = gone || isTerminal(delegate);
  const followed = new Set(isLast ? conditionsToRecord(proxy, delegate).conditions : recorded);
  const isAnybodys = anybodys(proxy);
  const told = typesOf(delegate);
  return {
    isHosts: (type) => isAnybodys(type) && !followed.has(type),
    // The record of one that has ended is written no more: what the proxy has from then on may be the host's own.
    withdrawn: isTerminal(proxy) ? [] : recorded.filter((type) => isAnybodys(type) && !told.has(type)),
  };
}

/** The proxy's conditions without those that it has from a delegate that is gone. */
export function conditionsWithout(proxy: Pod, departed: Stored<Pod>): PodCondition[] {
  const followed = new Set(recordedOn(departed) ?? typesOf(departed));
  const isAnybodys = anybodys(proxy);
  return (proxy.status?.conditions ?? []).filter(({ type }) => !isAnybodys(type) || !followed.has(type));
}

/** Undefined: the record is of an earlier version. */
function recordedOn({ metadata }: Stored<Pod>): readonly string[] | undefined {
  return readRecord(metadata.annotations?.[FORWARDED_ANNOTATION]).conditions?.slice(0, MOST_FOLLOWED);
}

function typesOf({ status }: Pod): ReadonlySet<string> {
  return new Set(status?.conditions?.map(({ type }) => type));
}
