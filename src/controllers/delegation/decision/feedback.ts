import type { Pod, PodStatus, Stored } from "../../../api/kubernetes.ts";
import { notReady, statusFrom, statusPatch } from "../../../pods/feedback.ts";
import { conditionsWithout } from "../../../pods/followed-conditions.ts";
import type { ResizeRefusal } from "../../../pods/forward.ts";
import { isTerminal } from "../../../pods/pod-state.ts";
import type { Action, ActionOf } from "./decision.ts";
import { isRecorded } from "./delegates.ts";
import { type MemberView, type PodView, wallTime } from "./view.ts";

export function feedback(proxy: Stored<Pod>, delegate: Stored<Pod>, refused?: ResizeRefusal): Action[] {
  const wanted = statusFrom(proxy, delegate, { refused });
  return wanted === undefined ? [] : statusWrite(proxy, wanted);
}

export function statusWrite(proxy: Stored<Pod>, wanted: PodStatus): ActionOf<"status">[] {
  const patch = statusPatch(proxy, wanted);
  return patch === undefined ? [] : [{ type: "status", patch, resourceVersion: proxy.metadata.resourceVersion }];
}

/** Writes a final status that no delegate reported. The precondition is the proxy's version: it may have ended. */
export function finalStatusWrite(proxy: Stored<Pod>, wanted: PodStatus): Action[] {
  const { uid, resourceVersion } = proxy.metadata;
  const patch = statusPatch(proxy, wanted);
  if (patch === undefined) return [];
  return [{ type: "status", patch: { ...patch, metadata: { uid, resourceVersion } }, resourceVersion }];
}

/** Does as the node lifecycle controller: no EndpointSlice may send requests to a pod on a node that is not Ready. */
export function notReadyWrite(view: PodView, member: MemberView | undefined, now: number): Action[] {
  const { proxy } = view;
  if (member?.notReady !== true || isTerminal(proxy)) return [];
  return statusWrite(proxy, notReady(proxy, proxy.status ?? {}, wallTime(view, now)));
}

/** The conditions that a delegate set do not hold for the next one. */
export function withoutConditionsOf(proxy: Stored<Pod>, departed: Stored<Pod> | undefined): ActionOf<"status">[] {
  if (departed === undefined || !isRecorded(departed, proxy)) return [];
  return statusWrite(proxy, { ...proxy.status, conditions: conditionsWithout(proxy, departed) });
}
