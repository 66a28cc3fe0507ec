import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { ownerOf, toDelegate } from "../../../pods/delegate.ts";
import { withoutMerged } from "../../../pods/host-admission.ts";
import { controllerOf, hasStarted, isBound, isDeleting, isTerminal } from "../../../pods/phase.ts";
import { specForNodesOf } from "../../../pods/virtual-node-terms.ts";
import type { Action, MemberView, Observed } from "./model.ts";

/** True when the pod is the delegate of exactly this proxy. */
export function isFor(delegate: Pod | undefined, proxy: Stored<Pod>): boolean {
  return delegate !== undefined && ownerOf(delegate)?.uid === proxy.metadata.uid;
}

/** True for one that is deleted before it has had a node: it has not run, and will not. Any other is the pod, and its end is the pod's. */
export function endsUnstarted(delegate: Stored<Pod>): boolean {
  return isDeleting(delegate) && !isBound(delegate) && !isTerminal(delegate);
}

/** The proxy's delegate that has run and gone before the host was told; undefined when there is none. */
export function ranUntold({ departed }: Pick<MemberView, "departed">, proxy: Stored<Pod>): Stored<Pod> | undefined {
  if (departed === undefined || !isFor(departed, proxy)) return undefined;
  return isTerminal(departed) || hasStarted(departed) ? departed : undefined;
}

/** Deletes a member's delegate; nothing when it cannot be reached or is on its way out. */
export function withdraw({ name, reachable, delegate }: MemberView): Extract<Action, { readonly type: "delete" }>[] {
  if (!reachable || delegate === undefined || isDeleting(delegate)) return [];
  return [{ type: "delete", member: name, uid: delegate.metadata.uid }];
}

/** The same of one that waits for a node, unless its scheduler has found one meanwhile: what may have started is not given away. */
export function withdrawWaiting(member: MemberView): ReturnType<typeof withdraw> {
  const { delegate } = member;
  const removals = withdraw(member);
  if (delegate === undefined || isBound(delegate)) return removals;
  return removals.map((removal) => ({ ...removal, resourceVersion: delegate.metadata.resourceVersion }));
}

/** Binds the proxy to the member that has given its delegate a node. */
export function bindTo(proxy: Stored<Pod>, { name: member }: MemberView, delegate: Stored<Pod>): Action {
  const { uid: proxyUid } = proxy.metadata;
  const memberNode = delegate.spec?.nodeName ?? "";
  return { type: "bind", member, proxyUid, delegateUid: delegate.metadata.uid, memberNode };
}

/** Makes the delegate in a member. A member that its overrides do not fit is not given the pod. */
export function createIn(
  proxy: Stored<Pod>,
  observed: Observed,
  member: string,
  parked = false,
): Extract<Action, { readonly type: "create" }> {
  const { uid: proxyUid } = proxy.metadata;
  const controlled = controllerOf(proxy) !== undefined;
  const delegate = delegateFor(proxy, observed, member);
  return { type: "create", member, proxyUid, delegate, controlled, ...(parked ? { parked } : {}) };
}

/** The delegate as the member is to have it. */
export function delegateFor(proxy: Stored<Pod>, observed: Observed, member: string): Pod {
  const candidate = observed.members.find(({ name }) => name === member)?.candidate;
  const overridden = candidate === undefined ? undefined : observed.specIn?.(candidate);
  const isFitting = overridden !== undefined && "spec" in overridden;
  const written = proxy.spec && withoutMerged(proxy.spec, observed.merged);
  const spec = isFitting ? overridden.spec : written && specForNodesOf({ name: member, labels: {} }, written);
  return toDelegate(proxy, observed.host, observed.apiAccess(member), spec);
}
