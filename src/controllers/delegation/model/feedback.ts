import type { Pod, PodStatus, Stored } from "../../../api/kubernetes.ts";
import { notReady, statusFrom, statusPatch } from "../../../pods/feedback.ts";
import { conditionsWithout } from "../../../pods/followed-conditions.ts";
import type { ResizeRefusal } from "../../../pods/forward.ts";
import { isTerminal } from "../../../pods/pod-state.ts";
import type { Action, ActionOf } from "./decision.ts";
import { isRecorded } from "./delegates.ts";
import { type MemberView, type PodView, wallTime } from "./view.ts";

/** Copies the delegate's status to the proxy, as one write; nothing when the proxy shows it already. */
export function feedback(proxy: Stored<Pod>, delegate: Stored<Pod>, refused?: ResizeRefusal): Action[] {
  const wanted = statusFrom(proxy, delegate, { refused });
  return wanted === undefined ? [] : statusWrite(proxy, wanted);
}

/** Writes a status; nothing when the proxy shows it already. */
export function statusWrite(proxy: Stored<Pod>, wanted: PodStatus): ActionOf<"status">[] {
  const patch = statusPatch(proxy, wanted);
  return patch === undefined ? [] : [{ type: "status", patch, resourceVersion: proxy.metadata.resourceVersion }];
}

/** Writes a final status that no delegate reported. Its precondition is the proxy's version, as the proxy may have ended. */
export function verdict(proxy: Stored<Pod>, wanted: PodStatus): Action[] {
  const { uid, resourceVersion } = proxy.metadata;
  const patch = statusPatch(proxy, wanted);
  if (patch === undefined) return [];
  return [{ type: "status", patch: { ...patch, metadata: { uid, resourceVersion } }, resourceVersion }];
}

/**
 * Marks a pod on a node that is not Ready as not ready, as the node lifecycle controller does: no EndpointSlice may send it requests,
 * also while it is being deleted.
 */
export function notReadyWrite(view: PodView, member: MemberView | undefined, now: number): Action[] {
  const { proxy } = view;
  if (member?.notReady !== true || isTerminal(proxy)) return [];
  return statusWrite(proxy, notReady(proxy, proxy.status ?? {}, wallTime(view, now)));
}

/** Removes the conditions that the recorded delegate, which went, had set: they do not hold for the next one. */
export function withoutConditionsOf(proxy: Stored<Pod>, departed: Stored<Pod> | undefined): ActionOf<"status">[] {
  if (departed === undefined || !isRecorded(departed, proxy)) return [];
  return statusWrite(proxy, { ...proxy.status, conditions: conditionsWithout(proxy, departed) });
}
