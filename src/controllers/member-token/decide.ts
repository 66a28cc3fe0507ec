import type { TokenClaims } from "../../api/kubernetes.ts";

export interface Observed {
  /** Undefined if the credentials are no such token: the operator renews them. */
  readonly claims: TokenClaims | undefined;
  readonly reachable: boolean;
  /** Time of the last request; epoch ms. */
  readonly renewedAt?: number;
}

export type Action = { readonly type: "renew"; readonly namespace: string; readonly name: string };

// To a clock that is ahead by more than half of a token's life, every new token is due.
const LEAST_AGE_MS = 60_000;
// Timers of Node.js reach no further than 24 days.
const LONGEST_WAIT_MS = 20 * 24 * 60 * 60_000;

/** Renews a member's token at half of its life. The other half is for times without a member or leader. */
export function decide(
  { claims, reachable, renewedAt = Number.NEGATIVE_INFINITY }: Observed,
  now: number,
  wall: number = now,
): { readonly actions: readonly Action[]; readonly outcome: string; readonly requeueAt?: number } {
  if (claims === undefined) return { actions: [], outcome: "Foreign" };
  const { namespace, name, issuedAt, expiresAt } = claims;
  const due = Math.max(issuedAt + (expiresAt - issuedAt) / 2 + now - wall, renewedAt + LEAST_AGE_MS);
  if (now < due) return { actions: [], outcome: "Valid", requeueAt: Math.min(due, now + LONGEST_WAIT_MS) };
  // The return of the connection is an event.
  if (!reachable) return { actions: [], outcome: "Unreachable" };
  return { actions: [{ type: "renew", namespace, name }], outcome: "Renewing" };
}
