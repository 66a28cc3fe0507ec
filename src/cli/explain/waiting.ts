import { PROXY_LABEL, PROXY_LABEL_VALUE } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isBound, isGated, isLive, unschedulableMessage } from "../../pods/pod-state.ts";
import { whyNotPlaced } from "../../pods/proxy-conditions.ts";
import type { Reason } from "./model.ts";

/** Explains a pod without any report of a controller. */
export const UNREPORTED = "no controller has reported on it yet";

/** Returns the names of a pod's scheduling gates. */
export function gatesOf({ spec }: Stored<Pod>): string {
  return (spec?.schedulingGates ?? []).map(({ name }) => name).join(", ");
}

/** Reports whether a pod is a proxy, which an overflowed pod is as well. */
export function isMarked({ metadata }: Stored<Pod>): boolean {
  return metadata.labels?.[PROXY_LABEL] === PROXY_LABEL_VALUE;
}

/** Reports whether a pod is a proxy, or asks for a member. In overflow mode it does so once the host has no node for it. */
export function asksForMember(pod: Stored<Pod>): boolean {
  return isMarked(pod) || (isOverflow(pod) && unschedulableMessage(pod) !== undefined);
}

/** Returns why a pod has no member. Undefined if it has one, or needs none. */
export function whyWithoutMember(pod: Stored<Pod>): Reason | undefined {
  return asksForMember(pod) && !isBound(pod) && isLive(pod) ? reasonOf(pod) : undefined;
}

function reasonOf(pod: Stored<Pod>): Reason {
  if (isGated(pod)) return { reason: "SchedulingGated", message: `waits for its scheduling gates: ${gatesOf(pod)}` };
  if (isOverflow(pod)) {
    const message = `this cluster has no node: ${unschedulableMessage(pod)}; an event NotOverflowed says why no member takes it`;
    return { reason: "Unschedulable", message };
  }
  const { reason = "NotPlaced", message = "" } = whyNotPlaced(pod) ?? {
    message: `${UNREPORTED}: it is being placed, or \`legation controller\` does not run`,
  };
  return { reason, message };
}
