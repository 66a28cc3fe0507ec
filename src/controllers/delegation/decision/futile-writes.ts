import { HOLD_MS } from "../../../runtime/held-writes.ts";
import { soonest } from "../../../runtime/requeue.ts";
import { isWriteHeld, type Memory } from "../../../scheduling/memory.ts";
import type { Action } from "./decision.ts";
import { type Purpose, undone } from "./write-purpose.ts";

// A write without effect is held by then, and the next decision is another one.
const CHECKED_MS = HOLD_MS + 1000;

/** Reports whether a patch is held: it was refused lately, had no effect, or is undone each time. */
export function isFutile(memory: Memory, patch: object, purpose: Purpose | undefined, now: number): boolean {
  const writes = [JSON.stringify(patch), ...(purpose === undefined ? [] : [undone(purpose)])];
  return writes.some((write) => isWriteHeld(memory, write, now));
}

/** Returns when a held write may be sent again, or when to see whether a write had an effect; epoch ms. */
export function writeAgainAt({ held = {} }: Memory, actions: readonly Action[], now: number): number | undefined {
  const times = Object.values(held).flatMap(({ until }) => (until > now ? [until] : []));
  const writes = actions.some(({ type }) => type === "status" || type === "forward");
  return soonest(...times, writes ? now + CHECKED_MS : undefined);
}
