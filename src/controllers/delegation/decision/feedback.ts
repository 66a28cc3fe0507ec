import { ADDED_CONDITION } from "../../../api/keys.ts";
import type { Pod, PodCondition, PodStatus, Stored } from "../../../api/kubernetes.ts";
import { ADDED_CONTAINER_FAILING } from "../../../pods/added-containers.ts";
import { statusFrom, statusPatch, withoutReadiness } from "../../../pods/feedback.ts";
import { conditionsWithout } from "../../../pods/followed-conditions.ts";
import type { ResizeRefusal } from "../../../pods/forward.ts";
import { isTerminal } from "../../../pods/pod-state.ts";
import { memberOf } from "../../../pods/proxy.ts";
import type { Action, ActionOf } from "./decision.ts";
import { isRecorded } from "./delegates.ts";
import { type MemberView, type PodView, wallTime } from "./view.ts";

export function feedback(proxy: Stored<Pod>, delegate: Stored<Pod>, refused?: ResizeRefusal): Action[] {
  const wanted = statusFrom(proxy, delegate, { refused });
  return wanted === undefined ? [] : [...statusWrite(proxy, wanted), ...announceAdded(proxy, wanted)];
}

/** Tells the author of failing containers that the proxy does not show: `kubectl logs` knows no log of theirs either. */
function announceAdded(proxy: Stored<Pod>, { conditions = [] }: PodStatus): Action[] {
  const isFailing = ({ type, reason }: PodCondition): boolean =>
    type === ADDED_CONDITION && reason === ADDED_CONTAINER_FAILING;
  const failing = conditions.find(isFailing);
  if (failing === undefined || proxy.status?.conditions?.some(isFailing) === true) return [];
  const { uid: proxyUid, namespace, name } = proxy.metadata;
  const message =
    `${memberOf(proxy) ?? "its member"} added containers, and they fail: ${failing.message}; ` +
    `\`legation logs ${name} -n ${namespace} -c NAME\` shows the log of one`;
  const dedupe = `${proxyUid} ${ADDED_CONTAINER_FAILING}`;
  return [{ type: "announce", proxyUid, reason: "AddedContainerFailing", message, dedupe }];
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
  return statusWrite(proxy, withoutReadiness(proxy, proxy.status ?? {}, wallTime(view, now)));
}

/** The conditions that a delegate set do not hold for the next one. */
export function withoutConditionsOf(proxy: Stored<Pod>, departed: Stored<Pod> | undefined): ActionOf<"status">[] {
  if (departed === undefined || !isRecorded(departed, proxy)) return [];
  return statusWrite(proxy, { ...proxy.status, conditions: conditionsWithout(proxy, departed) });
}
