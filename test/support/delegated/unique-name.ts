import { randomBytes } from "node:crypto";

/** A name that begins so and that nothing has, for what a test makes beside others: when it is tried again, the first is still there. */
export function uniqueName(start: string): string {
  return `${start}-${randomBytes(3).toString("hex")}`;
}
