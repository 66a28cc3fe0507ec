import { isTold, type Words } from "./told.ts";

/** Why a write is not sent: the API server refused it, stored no change, or another manager undoes it each time. */
export type HoldReason = "Refused" | "NoEffect" | "Undone";

/** A write that waits. Plain data, so that a view can carry it. */
export interface HeldWrite<W extends Words = Words> {
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
  readonly refusal?: WriteRefusal<W>;
}

/** A refusal of a write by the API server, and what the author was told of it. */
export interface WriteRefusal<W extends Words = Words> {
  readonly why: W;
  /** The words of the last event, and when it was recorded; epoch ms. */
  readonly reported: W;
  readonly reportedAt: number;
  /** When the write was first refused; epoch ms. */
  readonly since: number;
}

export type HeldWrites<W extends Words = Words> = Readonly<Record<string, HeldWrite<W>>>;

/** How long a write is held unless its controller says otherwise; ms. */
export const HOLD_MS: number = 5 * 60_000;

export function heldWrite<W extends Words>(held: HeldWrites<W> | undefined, write: string): HeldWrite<W> | undefined {
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
export function refusedAgain<W extends Words>(
  before: WriteRefusal<W> | undefined,
  why: W,
  now: number,
): WriteRefusal<W> {
  if (before === undefined) return { why, reported: why, reportedAt: now, since: now };
  const isReported = isTold({ ...before.reported, at: before.reportedAt }, why, now);
  return { ...before, why, ...(isReported ? {} : { reported: why, reportedAt: now }) };
}
