import type { Pod, Stored } from "../../api/kubernetes.ts";
import { forwardPatches } from "../../pods/forward.ts";
import { isDeleting } from "../../pods/phase.ts";
import { gatePatch } from "../../pods/readiness.ts";
import type { Action, MemberView } from "./model.ts";

/**
 * What has changed on the proxy since its delegate was made; nothing more reaches one that is on its way out. Gates first: the
 * pod's readiness waits for them.
 */
export function forwards(proxy: Stored<Pod>, { name: member }: MemberView, delegate: Stored<Pod>): Action[] {
  if (isDeleting(delegate)) return [];
  const gates = gatePatch(proxy, delegate);
  const { uid: proxyUid } = proxy.metadata;
  const { resourceVersion } = delegate.metadata;
  return [...(gates === undefined ? [] : [gates]), ...forwardPatches(proxy, delegate)].map((patch) => ({
    type: "forward",
    member,
    proxyUid,
    patch,
    resourceVersion,
  }));
}
