import { FORWARDED_ANNOTATION } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { jsonEqual } from "./equal.ts";
import { readRecord } from "./forwarded.ts";
import { conditionOf, isTerminal } from "./phase.ts";
import { isAnybodys } from "./readiness.ts";

/**
 * Types of conditions, neither kubelets' nor gates', that the proxy has or is to have from its delegate, as the delegate's record is to say. One
 * that both clusters have is whose it was first. `isNews`: the record does not say so yet.
 */
export function followedConditions(
  proxy: Pod,
  delegate: Stored<Pod>,
): { readonly conditions: readonly string[]; readonly isNews: boolean } {
  const earlier = recordedOn(delegate);
  const told = (delegate.status?.conditions ?? []).map(({ type }) => type);
  const conditions = [...new Set([...earlier, ...told])]
    .filter((type) => isAnybodys(proxy, type))
    .filter((type) => {
      const ours = conditionOf(proxy, type);
      if (earlier.includes(type)) return ours !== undefined || told.includes(type);
      // An earlier version has copied it, and has not said so.
      return ours === undefined || (ours.lastTransitionTime != null && jsonEqual(ours, conditionOf(delegate, type)));
    });
  return { conditions, isNews: !jsonEqual(conditions, earlier) };
}

/**
 * True when what the proxy has of this type stays, whatever the delegate says: somebody on the host has set it, or it is not on record yet that
 * it follows the delegate. `gone`: nothing more will be put on record.
 */
export function isHostsCondition(proxy: Pod, delegate: Stored<Pod>, type: string, gone: boolean): boolean {
  if (!isAnybodys(proxy, type) || recordedOn(delegate).includes(type)) return false;
  const isLast = gone || isTerminal(delegate);
  return conditionOf(proxy, type) !== undefined || !isLast;
}

/** Types of conditions that the proxy has from its delegate, which has them no more. */
export function withdrawnConditions(proxy: Pod, delegate: Stored<Pod>): string[] {
  return recordedOn(delegate).filter((type) => isAnybodys(proxy, type) && conditionOf(delegate, type) === undefined);
}

function recordedOn({ metadata }: Stored<Pod>): readonly string[] {
  return readRecord(metadata.annotations?.[FORWARDED_ANNOTATION]).conditions ?? [];
}
