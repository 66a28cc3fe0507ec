import { DELEGATE_FINALIZER } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { deletionGrace, isDeleting } from "../../../pods/pod-state.ts";
import type { Expectation } from "../../../runtime/controller.ts";
import { isBefore } from "../../../runtime/resource-version.ts";
import type { View } from "../model/view.ts";

/** Expects that the member's store shows a delegate that `holds`. */
export function expectInMember(member: string, holds: (delegate: Stored<Pod>) => boolean): Expectation<View> {
  return ({ members }) => {
    const delegate = members.find(({ name }) => name === member)?.delegate;
    return delegate !== undefined && holds(delegate);
  };
}

/** Expects that the member has what the pod needs, or refuses it. */
export function expectPrepared(member: string): Expectation<View> {
  return ({ members }) => members.find(({ name }) => name === member)?.readiness !== "unprepared";
}

/** Expects that the member's store shows the deletion, with a grace period no longer than requested. */
export function expectDeleted(member: string, uid: string, graceSeconds: number | undefined): Expectation<View> {
  return ({ members }) => {
    const delegate = members.find(({ name }) => name === member)?.delegate;
    if (delegate?.metadata.uid !== uid) return true;
    return isDeleting(delegate) && (graceSeconds === undefined || (deletionGrace(delegate) ?? 0) <= graceSeconds);
  };
}

/** Expects that the member's store shows another version of the delegate, or none. */
export function expectChanged(member: string, uid: string, resourceVersion: string): Expectation<View> {
  return ({ members }) => {
    const { metadata } = members.find(({ name }) => name === member)?.delegate ?? {};
    return metadata?.uid !== uid || metadata.resourceVersion !== resourceVersion;
  };
}

/** Expects that the proxy `holds`, is gone, or has been replaced. */
export function expectOnProxy(proxyUid: string, holds: (proxy: Stored<Pod>) => boolean): Expectation<View> {
  return ({ proxy }) => proxy === undefined || proxy.metadata.uid !== proxyUid || holds(proxy);
}

/**
 * Expects that the proxy has lost Legation's finalizer. Its resourceVersion does not tell: the API server deletes in place of
 * writing, and answers with the version before.
 */
export function expectFinalizerRemoved(proxyUid: string): Expectation<View> {
  return expectOnProxy(proxyUid, ({ metadata }) => !metadata.finalizers?.includes(DELEGATE_FINALIZER));
}

/** Reports whether the object is at least as new as the version. */
export function isAtLeast(pod: Pod, version: string): boolean {
  return !isBefore(pod.metadata?.resourceVersion ?? "0", version);
}
