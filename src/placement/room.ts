import type { Amounts } from "../api/quantity.ts";
import type { Candidate } from "./candidate.ts";
import { hasRoom } from "./rank.ts";

/** For how many pods that request so much a member has room, by what Legation knows. */
export function roomFor(requests: Amounts, candidate: Candidate): number {
  if (!hasRoom(requests, candidate)) return 0;
  let room = Number.POSITIVE_INFINITY;
  for (const resource in requests) {
    const wanted = requests[resource] ?? 0;
    if (wanted === 0) continue;
    const left = (candidate.allocatable[resource] ?? 0) - (candidate.used[resource] ?? 0);
    room = Math.min(room, Math.floor(left / wanted));
  }
  return Math.max(1, room);
}
