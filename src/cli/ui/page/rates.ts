import type { PodRow } from "../model.ts";

/** What becomes of pods. */
export type Turn = "created" | "started" | "finished" | "failed" | "removed";

export const TURNS: readonly Turn[] = ["created", "started", "finished", "failed", "removed"];

/** Rates are of the last five minutes, or since the page was opened. */
export const RATE_WINDOW_MS = 300_000;

const MOST_TURNS = 20_000;

/** Counts what becomes of pods while the page is open. */
export class Rates {
  readonly #turns: { readonly at: number; readonly turn: Turn }[] = [];
  #since: number | undefined;

  /** Begins to count: all pods are known. */
  begin(now: number): void {
    this.#since ??= now;
  }

  /** Takes a pod's row before and after a change. */
  observe(before: PodRow | undefined, after: PodRow | undefined, now: number): void {
    if (this.#since === undefined) return;
    for (const turn of turnsOf(before, after)) this.#turns.push({ at: now, turn });
    const { length } = this.#turns;
    if (length > MOST_TURNS) this.#turns.splice(0, length - MOST_TURNS);
  }

  /** Returns how often each turn was seen in the window, and how long the window is. */
  counts(now: number): { readonly ms: number; readonly of: Readonly<Record<Turn, number>> } {
    const old = this.#turns.findIndex(({ at }) => now - at <= RATE_WINDOW_MS);
    this.#turns.splice(0, old === -1 ? this.#turns.length : old);
    const of: Record<Turn, number> = { created: 0, started: 0, finished: 0, failed: 0, removed: 0 };
    for (const { turn } of this.#turns) of[turn] += 1;
    return { ms: Math.min(RATE_WINDOW_MS, now - (this.#since ?? now)), of };
  }
}

function turnsOf(before: PodRow | undefined, after: PodRow | undefined): Turn[] {
  if (after === undefined) return before === undefined ? [] : ["removed"];
  const turns: Turn[] = before === undefined ? ["created"] : [];
  if (after.state === before?.state) return turns;
  if (after.state === "running") turns.push("started");
  if (after.state === "succeeded") turns.push("finished");
  if (after.state === "failed") turns.push("failed");
  return turns;
}
