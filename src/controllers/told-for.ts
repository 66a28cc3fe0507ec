import { inWords } from "./delegation/decisions/retelling.ts";

/**
 * For how long what an event has told is there to be read; ms. API servers keep events for an hour by default, and `kubectl describe`
 * shows nothing else of what Legation says of a pod: what still holds by then is told again a little before.
 */
export const TOLD_FOR_MS: number = 50 * 60_000;

/** What an author was told last, and when; epoch ms. */
export interface LastTold {
  readonly message: string;
  readonly at: number;
}

/** What is told last once this is so: `last` itself while its event, which says the same but for numbers, is there to be read. */
export function toldNow(message: string, last: LastTold | undefined, now: number): LastTold {
  const isSaid = last !== undefined && inWords(last.message) === inWords(message);
  return isSaid && now < last.at + TOLD_FOR_MS ? last : { message, at: now };
}
