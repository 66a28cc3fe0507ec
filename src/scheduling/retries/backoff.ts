/** Doubled with each refusal. No event tells that a quota was raised or a class created. */
export const RETRY_AFTER_MS: number = 30_000;
const RETRY_AFTER_MAX_MS = 10 * 60_000;
// Granted once per attempt: a cause that lasts longer does not pass in a moment.
const RETRY_SOON_MS = 2_000;

/** `steady`: always the first pause, as the cause passes by itself. `brief`: a moment the first time, then growing. */
export type BackoffGrowth = "brief" | "steady" | "growing";

/** Returns the pause until the pod tries the member again, and the state that its next refusal there continues from. */
export function backoffAfterRefusal(
  { refusalCount: before, hurried: wasHurried = false }: { readonly refusalCount: number; readonly hurried?: boolean },
  growth: BackoffGrowth,
): { readonly restMs: number; readonly refusalCount: number; readonly hurried?: true } {
  const isBrief = growth === "brief" && !wasHurried;
  const refusalCount = before + (isBrief || growth === "steady" ? 0 : 1);
  const restMs = isBrief ? RETRY_SOON_MS : growth === "steady" ? RETRY_AFTER_MS : growingPauseMs(refusalCount);
  return { restMs, refusalCount, ...(isBrief || wasHurried ? { hurried: true } : {}) };
}

/** Returns the pause after so many attempts in vain; ms. */
export function growingPauseMs(attempts: number): number {
  return Math.min(RETRY_AFTER_MAX_MS, RETRY_AFTER_MS * 2 ** Math.max(0, attempts - 1));
}
