import { DELEGATE_FINALIZER } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { deletionGrace, isDeleting } from "../../../pods/phase.ts";
import type { Shown } from "../../../runtime/controller.ts";
import { isBefore } from "../../../runtime/resource-version.ts";
import type { View } from "../model/view.ts";

/** The member's store has a delegate under the name that `holds`. */
export function shownInMember(member: string, holds: (delegate: Stored<Pod>) => boolean): Shown<View> {
  return ({ members }) => {
    const delegate = members.find(({ name }) => name === member)?.delegate;
    return delegate !== undefined && holds(delegate);
  };
}

/** The member has what the pod needs, or will not have it. */
export function shownPrepared(member: string): Shown<View> {
  return ({ members }) => members.find(({ name }) => name === member)?.readiness !== "unprepared";
}

/** The member's store shows the deletion, with a grace period no longer than was asked for. */
export function shownGone(member: string, uid: string, graceSeconds: number | undefined): Shown<View> {
  return ({ members }) => {
    const delegate = members.find(({ name }) => name === member)?.delegate;
    if (delegate?.metadata.uid !== uid) return true;
    return isDeleting(delegate) && (graceSeconds === undefined || (deletionGrace(delegate) ?? 0) <= graceSeconds);
  };
}

/** The member's store no longer has the delegate in this version. */
export function shownChanged(member: string, uid: string, resourceVersion: string): Shown<View> {
  return ({ members }) => {
    const { metadata } = members.find(({ name }) => name === member)?.delegate ?? {};
    return metadata?.uid !== uid || metadata.resourceVersion !== resourceVersion;
  };
}

/** The proxy is as `holds` says, or gone, or another under its name. */
export function shownOnProxy(proxyUid: string, holds: (proxy: Stored<Pod>) => boolean): Shown<View> {
  return ({ proxy }) => proxy === undefined || proxy.metadata.uid !== proxyUid || holds(proxy);
}

/**
 * The proxy no longer has Legation's finalizer. Its resourceVersion would not tell: the API server answers the patch that
 * removes the last finalizer of a deleted object with the version before, since it deletes in place of writing.
 */
export function shownReleased(proxyUid: string): Shown<View> {
  return shownOnProxy(proxyUid, ({ metadata }) => !metadata.finalizers?.includes(DELEGATE_FINALIZER));
}

/** True when the object is at least as new as the version. */
export function isAtLeast(pod: Pod, version: string): boolean {
  return !isBefore(pod.metadata?.resourceVersion ?? "0", version);
}
