/** Why a write is not sent: the API server refused it, stored no change, or another manager undoes it each time. */
export type HoldReason = "Refused" | "NoEffect" | "Undone";

export interface RefusalWords {
  readonly message: string;
  /** Equal for refusals that need no second event, such as those that differ in amounts only. Default: the message. */
  readonly dedupe?: string;
}

/** A write that waits. Plain data, so that a view can carry it. */
export interface HeldWrite<Words extends RefusalWords = RefusalWords> {
  readonly reason: HoldReason;
  /** When the write may be sent again; epoch ms. */
  readonly until: number;
  /** The only content that is held. Absent: any content is. */
  readonly content?: string;
  /** How often the write was held since it was last done. Kept for holds that grow. */
  readonly times?: number;
  /** Who undoes the write, where an author is told of it. */
  readonly why?: string;
  /** The refusal, where an author is told of it. */
  readonly refusal?: WriteRefusal<Words>;
}

/** A refusal of a write by the API server, and what the author was told of it. */
export interface WriteRefusal<Words extends RefusalWords = RefusalWords> {
  readonly why: Words;
  /** The words of the last event, and when it was recorded; epoch ms. */
  readonly reported: Words;
  readonly reportedAt: number;
  /** When the write was first refused; epoch ms. */
  readonly since: number;
}

export type HeldWrites<Words extends RefusalWords = RefusalWords> = Readonly<Record<string, HeldWrite<Words>>>;

/**
 * Milliseconds. kube-apiserver keeps events for an hour (--event-ttl), so one that still holds is repeated a little
 * earlier.
 */
export const REPEAT_EVENT_AFTER_MS: number = 50 * 60_000;

/** How long a write is held unless its controller says otherwise; ms. */
export const HOLD_MS: number = 5 * 60_000;

export function heldWrite<Words extends RefusalWords>(
  held: HeldWrites<Words> | undefined,
  write: string,
): HeldWrite<Words> | undefined {
  return held !== undefined && Object.hasOwn(held, write) ? held[write] : undefined;
}

/** Returns epoch ms; undefined when the write may be sent now. */
export function heldUntil(
  held: HeldWrites | undefined,
  { write, content, now }: { readonly write: string; readonly content?: string; readonly now: number },
): number | undefined {
  const entry = heldWrite(held, write);
  if (entry === undefined || entry.until <= now) return undefined;
  return entry.content === undefined || entry.content === content ? entry.until : undefined;
}

/** `reportedAt` of the result is `now` if the author is to be told. */
export function refusedAgain<Words extends RefusalWords>(
  before: WriteRefusal<Words> | undefined,
  why: Words,
  now: number,
): WriteRefusal<Words> {
  if (before === undefined) return { why, reported: why, reportedAt: now, since: now };
  const isReported = dedupeKey(before.reported) === dedupeKey(why) && now < before.reportedAt + REPEAT_EVENT_AFTER_MS;
  return { ...before, why, ...(isReported ? {} : { reported: why, reportedAt: now }) };
}

function dedupeKey({ message, dedupe = message }: RefusalWords): string {
  return dedupe;
}
