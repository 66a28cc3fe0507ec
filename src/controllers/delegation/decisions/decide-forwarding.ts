import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { forwardPatches, type ResizeRefusal, resizeNeeded } from "../../../pods/forward.ts";
import { isDeleting } from "../../../pods/phase.ts";
import { gatePatch } from "../../../pods/readiness-gates.ts";
import { isFutile } from "./futile.ts";
import type { Action, MemberView, Memory, Observed } from "./model.ts";
import { purposeOf } from "./purpose.ts";

/**
 * The next of what has changed on the proxy since its delegate was made; the rest is decided on when the delegate shows it. Nothing more
 * reaches one that is on its way out, and nothing that was lately refused, had no effect or is undone each time is sent. Gates first: the pod's readiness waits for them.
 */
export function forwards(
  proxy: Stored<Pod>,
  { name: member }: MemberView,
  delegate: Stored<Pod>,
  { memory, merged }: Pick<Observed, "memory" | "merged">,
  now: number,
): Action[] {
  if (isDeleting(delegate)) return [];
  const refused = refusedResize(proxy, delegate, memory);
  // Once its time is over, a refused resize is tried again.
  const again = refused !== undefined && now >= refused.until ? undefined : refused;
  const gates = gatePatch(proxy, delegate);
  const next = [...(gates === undefined ? [] : [gates]), ...forwardPatches(proxy, delegate, again, merged)]
    .map((patch) => ({ patch, purpose: purposeOf(proxy, delegate, patch) }))
    .find(({ patch, purpose }) => !isFutile(memory, patch, purpose, now));
  if (next === undefined) return [];
  const { patch, purpose } = next;
  const { uid: proxyUid } = proxy.metadata;
  const { resourceVersion } = delegate.metadata;
  return [{ type: "forward", member, proxyUid, patch, resourceVersion, ...(purpose === undefined ? {} : { purpose }) }];
}

/** What the member said of the resize that the delegate still needs, and until when it is not asked again; undefined when it was not asked. */
export function refusedResize(
  proxy: Pod,
  delegate: Stored<Pod>,
  { resize }: Memory,
): (ResizeRefusal & { readonly until: number }) | undefined {
  if (resize === undefined) return undefined;
  return JSON.stringify(resizeNeeded(proxy, delegate)) === resize.spec ? resize : undefined;
}
