import { withoutAmounts } from "../kube/messages.ts";
import { REPEAT_EVENT_AFTER_MS } from "../runtime/held-writes.ts";

/** What an author was told last, and when; epoch ms. */
export interface LastTold {
  readonly message: string;
  readonly at: number;
}

/** What is told last once this is so: `last` itself while its event, which says the same but for numbers, is there to be read. */
export function toldNow(message: string, last: LastTold | undefined, now: number): LastTold {
  const isSaid = last !== undefined && inWords(last.message) === inWords(message);
  return isSaid && now < last.at + REPEAT_EVENT_AFTER_MS ? last : { message, at: now };
}

/** A message without its amounts: those that differ in nothing else say the same. */
export function inWords(message: string): string {
  return withoutAmounts(message);
}
