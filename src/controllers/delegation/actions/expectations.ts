import { DELEGATE_FINALIZER } from "../../../api/keys.ts";
import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { deletionGrace, isDeleting } from "../../../pods/pod-state.ts";
import type { Expectation } from "../../../runtime/controller.ts";
import { isBefore } from "../../../runtime/resource-version.ts";
import { isForced } from "../decision/delegates.ts";
import { preparationFor } from "../decision/on-demand.ts";
import { hasProxy, type View } from "../decision/view.ts";

export function expectInMember(member: string, holds: (delegate: Stored<Pod>) => boolean): Expectation<View> {
  return ({ members }) => {
    const delegate = members.find(({ name }) => name === member)?.delegate;
    return delegate !== undefined && holds(delegate);
  };
}

export function expectPrepared(member: string): Expectation<View> {
  return (view) => preparationFor(view, member) !== "unprepared";
}

/** `graceSeconds`: the longest grace period that counts as the deletion. */
export function expectDeleted(member: string, uid: string, graceSeconds: number | undefined): Expectation<View> {
  return ({ members }) => {
    const delegate = members.find(({ name }) => name === member)?.delegate;
    if (delegate?.metadata.uid !== uid) return true;
    return isDeleting(delegate) && (graceSeconds === undefined || (deletionGrace(delegate) ?? 0) <= graceSeconds);
  };
}

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

/** The resourceVersion does not tell: the API server deletes in place of writing, and answers with the version before. */
export function expectFinalizerRemoved(proxyUid: string): Expectation<View> {
  return expectOnProxy(proxyUid, ({ metadata }) => !metadata.finalizers?.includes(DELEGATE_FINALIZER));
}

/** A deletion that is forced meanwhile does not wait for the write to be shown. */
export function unlessForced(expectation: Expectation<View>): Expectation<View> {
  return (view) => (hasProxy(view) && isForced(view.proxy)) || expectation(view);
}

export function isAtLeast(pod: Pod, version: string): boolean {
  return !isBefore(pod.metadata?.resourceVersion ?? "0", version);
}
