/**
 * For how long what an event has told is there to be read; ms. API servers keep events for an hour by default, and `kubectl describe`
 * shows nothing else of what Legation says of a pod: what still holds by then is told again a little before.
 */
export const TOLD_FOR_MS: number = 50 * 60_000;

// An amount of its own, with its unit or exponent if any: not a part of a name, nor anything between quotes.
const NUMBER = /(?<![\w./"'-])\d[\d.]*(?:(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)(?!\w))?/g;

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

/** A message without its amounts: those that differ in nothing else say the same. */
export function inWords(message: string): string {
  return message.replaceAll(NUMBER, "0");
}
