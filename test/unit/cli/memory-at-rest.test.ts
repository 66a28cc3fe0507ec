import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { saveMemoryAtRest } from "../../../src/cli/memory-at-rest.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("memory is saved once the process has rested for ten seconds, until it works again", () => {
  const used = { user: 0, system: 0 };
  const flags: string[] = [];
  saveMemoryAtRest({ cpuUsage: () => ({ ...used }), setFlag: (flag) => void flags.push(flag) });
  const pass = (seconds: number, share: number): void => {
    for (let at = 0; at < seconds; at += 2) {
      used.user += share * 1e6;
      used.system += share * 1e6;
      vi.advanceTimersByTime(2_000);
    }
  };
  pass(8, 0.1);
  expect(flags).toEqual([]);
  pass(20, 0.1);
  expect(flags).toEqual(["--optimize-for-size"]);
  pass(2, 0.3);
  expect(flags.at(-1)).toBe("--no-optimize-for-size");
  pass(8, 0);
  expect(flags.at(-1)).toBe("--no-optimize-for-size");
  pass(2, 0);
  expect(flags.at(-1)).toBe("--optimize-for-size");
});
