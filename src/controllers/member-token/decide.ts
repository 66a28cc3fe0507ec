/** What a service account token says of itself. Times are epoch ms. */
export interface TokenClaims {
  /** The service account it is for. */
  readonly namespace: string;
  readonly name: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
}

/** Everything that one decision depends on. */
export interface Observed {
  /** Undefined when the credentials are not such a token: they are the operator's business then. */
  readonly claims: TokenClaims | undefined;
  readonly reachable: boolean;
  /** When the last one was asked for here; epoch ms. */
  readonly renewedAt?: number;
}

/** One renewal. */
export type Action = { readonly type: "renew"; readonly namespace: string; readonly name: string };

// A clock that is ahead by more than half of a token's life finds every new one old.
const LEAST_AGE_MS = 60_000;
// Node's timers reach no further than 24 days.
const LONGEST_WAIT_MS = 20 * 24 * 60 * 60_000;

/** Renews a member's token at half of its life: the other half is for members and controllers that are away. */
export function decide(
  { claims, reachable, renewedAt = Number.NEGATIVE_INFINITY }: Observed,
  now: number,
  wall: number = now,
): { readonly actions: readonly Action[]; readonly outcome: string; readonly requeueAt?: number } {
  if (claims === undefined) return { actions: [], outcome: "Foreign" };
  const { namespace, name, issuedAt, expiresAt } = claims;
  const due = Math.max(issuedAt + (expiresAt - issuedAt) / 2 + now - wall, renewedAt + LEAST_AGE_MS);
  if (now < due) return { actions: [], outcome: "Valid", requeueAt: Math.min(due, now + LONGEST_WAIT_MS) };
  // Its connection's return is an event of its own.
  if (!reachable) return { actions: [], outcome: "Unreachable" };
  return { actions: [{ type: "renew", namespace, name }], outcome: "Renewing" };
}
