/** Words for an author. */
export interface Words {
  readonly message: string;
  /** Equal for words that need no second event, such as those that differ in amounts only. Default: the message. */
  readonly dedupe?: string;
}

/** Words that an author was told, and when; epoch ms. */
export interface Told extends Words {
  readonly at?: number;
}

/** Milliseconds. kube-apiserver keeps events for an hour (--event-ttl): one that still holds is repeated before. */
export const REPEAT_EVENT_AFTER_MS: number = 50 * 60_000;

/** Reports whether an event of then can still be read. */
export function isReadable(at: number | undefined, now: number): boolean {
  return at !== undefined && now < at + REPEAT_EVENT_AFTER_MS;
}

/** Reports whether the author was told this last, in an event that can still be read. */
export function isTold(told: Told | undefined, words: Words, now: number): boolean {
  return told !== undefined && dedupeKey(told) === dedupeKey(words) && isReadable(told.at, now);
}

/** Words that need no second event have the same key. */
export function dedupeKey({ message, dedupe = message }: Words): string {
  return dedupe;
}
