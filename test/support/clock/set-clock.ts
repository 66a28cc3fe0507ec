/**
 * Loaded into a process (`node --import`), it shows that process a machine whose clock somebody sets: the file that
 * LEGATION_TEST_CLOCK names says by how many milliseconds it is ahead. What counts time evenly is not touched, as on a machine.
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
