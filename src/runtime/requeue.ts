export interface Decision<Action, Outcome extends string = string> {
  /** Executed in this order; the first that fails ends the reconcile. */
  readonly actions: readonly Action[];
  readonly outcome: Outcome;
  /** When to reconcile again without an event; epoch ms. */
  readonly requeueAt?: number;
}

/** Returns the first of these times; undefined if there is none. */
export function soonest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Returns the part of a decision that has its key looked at again at the first of these times; epoch ms. */
export function lookAgain(...times: readonly (number | undefined)[]): { readonly requeueAt?: number } {
  const requeueAt = soonest(...times);
  return requeueAt === undefined ? {} : { requeueAt };
}

/** The pause between two looks at what no event tells of. */
export const UNTOLD_MS = 1_000;
