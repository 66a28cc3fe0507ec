import type { Pod, Stored } from "../../../api/kubernetes.ts";
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

/**
 * Tells the author why the pod waits; nothing when that was the last thing said. Where only numbers differ (what is left in
 * members changes with each pod that comes or goes), or whether members answer, it is said anew once a minute at most: each is
 * two writes.
 */
export function report(proxy: Stored<Pod>, { memory, members }: Observed, { reason, message, now }: Report): Action[] {
  const { reported, reportedAt = 0, reportedReason } = memory;
  if (reported === message) return [];
  if (reported !== undefined) {
    const news = newness({ reason, message, reported, reportedReason }, members);
    if (news === "none" || (news === "little" && now < reportedAt + COUNT_AGAIN_MS)) return [];
  }
  return [{ type: "report", proxyUid: proxy.metadata.uid, reason, message }];
}
