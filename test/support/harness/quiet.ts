import { availableParallelism, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { acquireFirst } from "../clusters/lock.ts";
import { turnFile } from "./place-of-file.ts";

// More threads than this that want each processor, and answers come later than clients and leases wait.
const BUSY_PER_PROCESSOR = 6;
const POLL_MS = 1_000;
// The average of a minute tells of what a file has started by then.
const SEEN_AFTER_MS = 10_000;
// Files that run for long do not hold up the others.
const LONGEST_MS = 180_000;

/** Waits while the machine has far more to do than it can: a machine of half the speed runs fewer files at once. */
export async function untilQuiet(turns: string): Promise<void> {
  if (!isBusy()) return;
  const { release } = await acquireFirst([turnFile(turns, "quiet")], () => {});
  try {
    for (let waitedMs = 0; isBusy() && waitedMs < LONGEST_MS; waitedMs += POLL_MS) await sleep(POLL_MS);
  } finally {
    setTimeout(release, SEEN_AFTER_MS).unref();
  }
}

function isBusy(): boolean {
  const [busy = 0] = loadavg();
  return busy > BUSY_PER_PROCESSOR * availableParallelism();
}
