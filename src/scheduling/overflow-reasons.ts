import type { Pod } from "../api/kubernetes.ts";
import type { Refusal } from "../placement/candidate.ts";
import { explain } from "../placement/rank.ts";
import { hostClaim } from "../pods/overflow.ts";

/** The reason of the event that says why a pod stays on the host. */
export const NOT_OVERFLOWED = "NotOverflowed";

/** A claim keeps the pod on the host, whatever room there is elsewhere. */
export function staysForClaim({ spec }: Pod): string | undefined {
  const claim = spec === undefined ? undefined : hostClaim(spec);
  return claim === undefined ? undefined : `stays on this cluster: its claim is this cluster's (${claim})`;
}

export function noRoomEither(refusals: readonly Refusal[]): string {
  return `no member cluster has room either: ${explain(refusals)}`;
}
