import type { Pod, Stored } from "../../../api/kubernetes.ts";
import { isBound } from "../../../pods/phase.ts";
import { TOLD_FOR_MS } from "../../told-for.ts";
import type { Action, Observed } from "./model.ts";
import { newness } from "./retelling.ts";

/** How soon little news is worth telling. */
export const COUNT_AGAIN_MS = 60_000;

/** Why a pod waits, in one word and in a sentence, as of a time in epoch ms. */
export interface Report {
  readonly reason: string;
  readonly message: string;
  readonly now: number;
}

// Pods that began to wait together are told again one after the other.
const SPREAD_MS = 9 * 60_000;

/** When the pod is told again what still holds, before the event that told it at this time is forgotten; epoch ms. */
export function tellAgainAt({ metadata: { uid } }: Stored<Pod>, reportedAt: number): number {
  // The first digits of a uid are as good as chance.
  const chance = Number.parseInt(uid.slice(0, 8), 16);
  return reportedAt + TOLD_FOR_MS + (Number.isNaN(chance) ? 0 : chance % SPREAD_MS);
}

/**
 * Tells the author why the pod waits; nothing when that was the last thing said, and its event is still there to be read. Where only numbers differ (what is left in
 * members changes with each pod that comes or goes), or whether members answer, it is said anew once a minute at most: each is
 * two writes.
 */
export function report(proxy: Stored<Pod>, { memory, members }: Observed, { reason, message, now }: Report): Action[] {
  const { reported, reportedAt = 0, reportedReason } = memory;
  const { uid: proxyUid } = proxy.metadata;
  const bound: { bound?: true } = isBound(proxy) ? { bound: true } : {};
  if (reported === message) {
    const isOld = memory.reportedAt !== undefined && now >= tellAgainAt(proxy, reportedAt);
    return isOld ? [{ type: "report", proxyUid, reason, message, ...bound, again: true }] : [];
  }
  if (reported !== undefined) {
    const news = newness({ reason, message, reported, reportedReason }, members);
    if (news === "none" || (news === "little" && now < reportedAt + COUNT_AGAIN_MS)) return [];
  }
  return [{ type: "report", proxyUid, reason, message, ...bound }];
}
