import { type Action, soonest } from "./decision.ts";
import { INEFFECTIVE_MS, isIneffective, type Memory } from "./memory.ts";
import { type Purpose, undone } from "./purpose.ts";

// A write without effect is held back by then, and the next decision is another one.
const CHECKED_MS = INEFFECTIVE_MS + 1000;

/** Reports whether a write was refused lately, had no effect, or is undone each time. */
export function isFutile(memory: Memory, patch: object, purpose: Purpose | undefined, now: number): boolean {
  const texts = [JSON.stringify(patch), ...(purpose === undefined ? [] : [undone(purpose)])];
  return texts.some((text) => isIneffective(memory, text, now));
}

/**
 * Returns when writes are decided on again without an event: when one that is held back may be sent again or its refusal is over,
 * and after a status or a forward, in case it has no effect. Epoch ms.
 */
export function writeAgainAt(
  { ineffective = {}, refused = {}, resize }: Memory,
  actions: readonly Action[],
  now: number,
): number | undefined {
  const refusedUntil = Object.values(refused).map(({ until }) => until);
  const held = [...Object.values(ineffective), ...refusedUntil, resize?.until ?? 0].filter((until) => until > now);
  const writes = actions.some(({ type }) => type === "status" || type === "forward");
  return soonest(...held, writes ? now + CHECKED_MS : undefined);
}
