import type { Pod } from "../../api/kubernetes.ts";
import type { Refusal } from "../../placement/candidate.ts";
import { explain } from "../../placement/rank.ts";
import { hostClaim } from "../../pods/overflow.ts";

/** The reason of the event that says why a pod stays on the host. */
export const NOT_OVERFLOWED = "NotOverflowed";

/** Why a pod with a claim stays on the host, wherever else there is room; undefined: it has none. */
export function staysForClaim({ spec }: Pod): string | undefined {
  const claim = spec === undefined ? undefined : hostClaim(spec);
  return claim === undefined ? undefined : `stays on this cluster: its claim is this cluster's (${claim})`;
}

/** What is said of a pod that no member can take either. */
export function noRoomEither(refusals: readonly Refusal[]): string {
  return `no member cluster has room either: ${explain(refusals)}`;
}
