/**
 * Preloaded into a process (`node --import`), sets its wall clock ahead by the milliseconds in the file of
 * LEGATION_TEST_CLOCK. The monotonic clock is unchanged.
 */
import { readFileSync } from "node:fs";

const LOOK_MS = 50;

const file = process.env.LEGATION_TEST_CLOCK;
const RealDate = Date;
let aheadMs = 0;

function look(): void {
  try {
    aheadMs = Number(readFileSync(file ?? "", "utf8")) || 0;
  } catch {
    // The clock was not set yet.
  }
}

class SetDate extends RealDate {
  constructor(...parts: [] | ConstructorParameters<DateConstructor>) {
    if (parts.length === 0) super(SetDate.now());
    else super(...parts);
  }

  static override now(): number {
    return RealDate.now() + aheadMs;
  }
}

if (file !== undefined) {
  look();
  setInterval(look, LOOK_MS).unref();
  Reflect.set(globalThis, "Date", SetDate);
}
