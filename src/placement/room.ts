import { type Amounts, ROUNDING } from "../api/quantity.ts";
import type { Candidate } from "./candidate.ts";
import { hasRoom } from "./rank.ts";

/** For how many pods of a namespace that request so much a member has room, by what Legation knows and its Cluster allows. */
export function roomFor(requests: Amounts, candidate: Candidate, namespace = ""): number {
  if (!hasRoom(requests, candidate)) return 0;
  const { allocatable, used, limits, usedIn } = candidate;
  const room = Math.max(1, fitting(requests, allocatable, used, 0));
  if (limits === undefined) return room;
  const allowed = fitting(requests, limits.total, usedIn?.() ?? used);
  return Math.max(0, Math.min(room, allowed, fitting(requests, limits.perNamespace, usedIn?.(namespace) ?? {})));
}

/** How many fit in what is left of these amounts, where what is not among them is `otherwise`. */
function fitting(requests: Amounts, amounts: Amounts, used: Amounts, otherwise = Number.POSITIVE_INFINITY): number {
  let count = Number.POSITIVE_INFINITY;
  for (const resource in requests) {
    const wanted = requests[resource] ?? 0;
    if (wanted === 0) continue;
    const left = (amounts[resource] ?? otherwise) - (used[resource] ?? 0);
    count = Math.min(count, Math.floor((left + ROUNDING) / wanted));
  }
  return count;
}
