import { isIneffective, type Memory } from "./model.ts";
import { type Purpose, undone } from "./purpose.ts";

/** Whether a write was refused lately, had no effect, or is for what somebody undoes each time. */
export function isFutile(memory: Memory, patch: object, purpose: Purpose | undefined, now: number): boolean {
  const texts = [JSON.stringify(patch), ...(purpose === undefined ? [] : [undone(purpose)])];
  return texts.some((text) => isIneffective(memory, text, now));
}
