import { defined } from "../../../api/defined.ts";
import { type Pod, type Stored, timestamp } from "../../../api/kubernetes.ts";
import { forwardPatches, type ResizeRefusal, resizeNeeded } from "../../../pods/forward.ts";
import { isDeleting } from "../../../pods/pod-state.ts";
import { gatePatch } from "../../../pods/readiness-gates.ts";
import { heldWrite } from "../../../runtime/held-writes.ts";
import { RESIZE } from "../../../scheduling/memory.ts";
import type { Action } from "./decision.ts";
import { type View, wallTime } from "./view.ts";
import { isFutile, purposeOf } from "./write-purpose.ts";

/** Returns the next change of the proxy that its delegate lacks, readiness gates first. */
export function forwards(
  proxy: Stored<Pod>,
  member: string,
  delegate: Stored<Pod>,
  view: Pick<View, "memory" | "merged" | "wallOffsetMs">,
  now: number,
): Action[] {
  if (isDeleting(delegate)) return [];
  const { memory, merged } = view;
  const { until = 0 } = heldWrite(memory.held, RESIZE) ?? {};
  const held = now < until ? refusedResize(proxy, delegate, view) : undefined;
  const gates = gatePatch(proxy, delegate);
  const next = [...(gates === undefined ? [] : [gates]), ...forwardPatches(proxy, delegate, held, merged)]
    .map((patch) => ({ patch, purpose: purposeOf(proxy, delegate, patch) }))
    .find(({ patch, purpose }) => !isFutile(memory, patch, purpose, now));
  if (next === undefined) return [];
  const { patch, purpose } = next;
  const { uid: proxyUid } = proxy.metadata;
  const { resourceVersion } = delegate.metadata;
  return [{ type: "forward", member, proxyUid, patch, resourceVersion, ...defined({ purpose }) }];
}

export function refusedResize(
  proxy: Pod,
  delegate: Stored<Pod>,
  view: Pick<View, "memory" | "wallOffsetMs">,
): ResizeRefusal | undefined {
  const { refusal, content } = heldWrite(view.memory.held, RESIZE) ?? {};
  if (refusal === undefined || JSON.stringify(resizeNeeded(proxy, delegate)) !== content) return undefined;
  const { why, since } = refusal;
  const reason = why.reason === "Deferred" ? "Deferred" : "Infeasible";
  return { reason, message: why.message, since: timestamp(wallTime(view, since)) };
}
