import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { forwardPatches, type ResizeRefusal, resizeNeeded } from "../../../pods/forward.ts";
import { isDeleting } from "../../../pods/pod-state.ts";
import { gatePatch } from "../../../pods/readiness-gates.ts";
import type { Action } from "./decision.ts";
import { isFutile } from "./futile-writes.ts";
import type { Memory } from "./memory.ts";
import type { View } from "./view.ts";
import { purposeOf } from "./write-purpose.ts";

/**
 * Returns the next change of the proxy that its delegate lacks; the rest follows once the delegate shows it. Readiness gates come
 * first. Nothing is forwarded to a delegate that is being deleted, nor what is held back.
 */
export function forwards(
  proxy: Stored<Pod>,
  member: string,
  delegate: Stored<Pod>,
  { memory, merged }: Pick<View, "memory" | "merged">,
  now: number,
): Action[] {
  if (isDeleting(delegate)) return [];
  const refused = refusedResize(proxy, delegate, memory);
  const held = refused !== undefined && now >= refused.until ? undefined : refused;
  const gates = gatePatch(proxy, delegate);
  const next = [...(gates === undefined ? [] : [gates]), ...forwardPatches(proxy, delegate, held, merged)]
    .map((patch) => ({ patch, purpose: purposeOf(proxy, delegate, patch) }))
    .find(({ patch, purpose }) => !isFutile(memory, patch, purpose, now));
  if (next === undefined) return [];
  const { patch, purpose } = next;
  const { uid: proxyUid } = proxy.metadata;
  const { resourceVersion } = delegate.metadata;
  return [{ type: "forward", member, proxyUid, patch, resourceVersion, ...(purpose === undefined ? {} : { purpose }) }];
}

/** Returns the member's refusal of the resize that the delegate still needs; undefined when there is none. */
export function refusedResize(
  proxy: Pod,
  delegate: Stored<Pod>,
  { resize }: Memory,
): (ResizeRefusal & { readonly until: number }) | undefined {
  if (resize === undefined) return undefined;
  return JSON.stringify(resizeNeeded(proxy, delegate)) === resize.spec ? resize : undefined;
}
