import { DELEGATE_FINALIZER, DELEGATE_UID_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { ownerOf } from "../../../pods/delegate.ts";
import {
  askedGrace,
  controllerOf,
  deletionAskedAt,
  everRan,
  isBound,
  isDeleting,
  isTerminal,
} from "../../../pods/pod-state.ts";
import { memberOf } from "../../../pods/proxy.ts";
import type { Action, ActionOf } from "./decision.ts";
import { type MemberView, type PodView, wallTime } from "./view.ts";

// A delegate has gone from its member's API server this long after its grace period.
const ENDS_WITHIN_MS = 10_000;

export type DelegateHolder = MemberView & { readonly delegate: Stored<Pod> };

export function isFor(delegate: Pod | undefined, proxy: Stored<Pod>): boolean {
  return delegate !== undefined && ownerOf(delegate)?.uid === proxy.metadata.uid;
}

/** Reports whether the proxy records exactly this pod as its delegate: status comes from no other. */
export function isRecorded(delegate: Stored<Pod>, proxy: Stored<Pod>): boolean {
  return isFor(delegate, proxy) && proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION] === delegate.metadata.uid;
}

/** The delegate has not run, and will not. */
export function endsUnstarted(delegate: Stored<Pod>): boolean {
  return isDeleting(delegate) && !isBound(delegate) && !isTerminal(delegate);
}

/** Returns the proxy's delegate that ran and went before the host heard of it; undefined when there is none. */
export function ranUntold({ departed }: Pick<MemberView, "departed">, proxy: Stored<Pod>): Stored<Pod> | undefined {
  if (departed === undefined || !isFor(departed, proxy)) return undefined;
  return isTerminal(departed) || everRan(departed) ? departed : undefined;
}

/** Reports whether a proxy has no delegate on record: it is not bound, or was bound before it had one. */
export function awaitsDelegate({ metadata }: Pod): boolean {
  return metadata?.annotations?.[DELEGATE_UID_ANNOTATION] === undefined;
}

export function isBoundWithDelegate(proxy: Pod): boolean {
  return isBound(proxy) && !awaitsDelegate(proxy);
}

/** Reports whether a change of the proxy put a delegate, or another one, on record. */
export function isNewlyRecorded(previous: Pod, next: Pod): boolean {
  const [before, now] = [previous, next].map(({ metadata }) => metadata?.annotations?.[DELEGATE_UID_ANNOTATION]);
  return isBoundWithDelegate(next) && !(isBoundWithDelegate(previous) && before === now);
}

export function hasFinalizer({ metadata }: Pod): boolean {
  return metadata?.finalizers?.includes(DELEGATE_FINALIZER) ?? false;
}

export function isHolder(member: MemberView): member is DelegateHolder {
  return member.delegate !== undefined;
}

export function holdersOf({ proxy, members }: PodView): DelegateHolder[] {
  return members.filter(isHolder).filter(({ delegate }) => isFor(delegate, proxy));
}

/** Returns the member that has the delegate of an unbound proxy. Of several it is the one that stays. */
export function holderOf(view: PodView): DelegateHolder | undefined {
  const holders = holdersOf(view);
  const hasNode = ({ delegate }: DelegateHolder): boolean => isBound(delegate);
  return (
    holders.find((member) => member.reachable && hasNode(member)) ??
    holders.find(hasNode) ??
    holders.find(({ removed }) => removed !== true) ??
    holders[0]
  );
}

/** Returns the member that a bound proxy was given to; undefined when its Cluster is gone. */
export function boundMember({ proxy, members }: PodView): MemberView | undefined {
  const name = memberOf(proxy);
  return members.find((member) => member.name === name);
}

/** Returns the last state of the recorded delegate that its member showed before it went. */
export function lastRecorded(view: PodView): Stored<Pod> | undefined {
  const { departed } = boundMember(view) ?? {};
  return departed !== undefined && isRecorded(departed, view.proxy) ? departed : undefined;
}

/** Returns the members that have a delegate of the proxy beside its own member's. */
export function surplusHolders(view: PodView): DelegateHolder[] {
  const member = boundMember(view);
  return holdersOf(view).filter(({ name }) => name !== member?.name);
}

/** Any member can claim to have a delegate: others than the proxy's own are waited for as long as a kubelet takes. */
export function blocksDeletion(member: MemberView, view: PodView, now: number): boolean {
  if (!isFor(member.delegate, view.proxy)) return false;
  return !isSurplus(member, view.proxy) || surplusAwaitedUntil(view, now) !== undefined;
}

/** Reports whether a delegate of the bound proxy is neither in its member nor on its record. */
export function isSurplus({ name, delegate }: MemberView, proxy: Stored<Pod>): boolean {
  const own = memberOf(proxy);
  if (delegate === undefined || !isFor(delegate, proxy) || own === undefined || own === name) return false;
  return !isRecorded(delegate, proxy);
}

/** Returns until when the end of the proxy waits for surplus delegates; epoch ms. Undefined when it does not, or no longer. */
export function surplusAwaitedUntil(view: PodView, now: number): number | undefined {
  const askedAt = deletionAskedAt(view.proxy);
  const grace = askedGrace(view.proxy) ?? 0;
  if (askedAt === undefined || grace === 0) return undefined;
  const passedMs = wallTime(view, now) - askedAt;
  const waitMs = grace * 1000 + ENDS_WITHIN_MS;
  // Clocks differ. Where they differ by more, nothing is waited for.
  return Math.abs(passedMs) < waitMs ? now + waitMs - passedMs : undefined;
}

export function hasOtherFinalizers({ metadata: { finalizers = [] } }: Stored<Pod>): boolean {
  return finalizers.some((name) => name !== DELEGATE_FINALIZER);
}

/** Reports whether a bound proxy is being deleted with grace 0, so that only Legation's finalizer holds it. */
export function isForced(proxy: Stored<Pod>): boolean {
  return isBound(proxy) && askedGrace(proxy) === 0 && !hasOtherFinalizers(proxy);
}

/** Reports whether a member that does not answer is not waited for: after out-of-service or a deletion by force. */
export function isAbandoned(member: MemberView, { proxy }: PodView): boolean {
  if (member.reachable && member.read) return false;
  if (member.outOfService === true) return true;
  if (member.delegate !== undefined && isTerminal(member.delegate)) return true;
  return isBound(proxy) && askedGrace(proxy) === 0;
}

export function withdraw({ name, reachable, delegate }: MemberView): ActionOf<"delete">[] {
  if (!reachable || delegate === undefined || isDeleting(delegate)) return [];
  return [{ type: "delete", member: name, uid: delegate.metadata.uid }];
}

/** Deletes a delegate that waits for a node, unless the member's scheduler binds it meanwhile. */
export function withdrawWaiting(member: MemberView): ActionOf<"delete">[] {
  const { delegate } = member;
  const removals = withdraw(member);
  if (delegate === undefined || isBound(delegate)) return removals;
  return removals.map((removal) => ({ ...removal, resourceVersion: delegate.metadata.resourceVersion }));
}

export function bindTo(proxy: Stored<Pod>, member: string, delegate: Stored<Pod>): Action {
  const { uid: proxyUid } = proxy.metadata;
  const memberNode = delegate.spec?.nodeName ?? "";
  return { type: "bind", member, proxyUid, delegateUid: delegate.metadata.uid, memberNode };
}

export function recordOn(proxy: Stored<Pod>, delegate: Stored<Pod>): Action {
  const { uid: proxyUid, resourceVersion } = proxy.metadata;
  const memberNode = delegate.spec?.nodeName ?? "";
  return { type: "recordDelegate", proxyUid, resourceVersion, delegateUid: delegate.metadata.uid, memberNode };
}

export function createIn(proxy: Stored<Pod>, member: string, parked = false): ActionOf<"create"> {
  const controlled = controllerOf(proxy) !== undefined;
  return { type: "create", member, proxyUid: proxy.metadata.uid, controlled, ...(parked ? { parked } : {}) };
}
