import { describe, expect, test } from "vitest";
import type { PodRow } from "../../../../../src/cli/ui/model.ts";
import { RATE_WINDOW_MS, Rates } from "../../../../../src/cli/ui/page/rates.ts";
import { podRow } from "../../../../../src/cli/ui/rows.ts";
import { proxyPod } from "../../../../support/builders/pod.ts";

const row = (state: PodRow["state"]): PodRow => ({ ...podRow(proxyPod()), state });
const NONE = { created: 0, started: 0, finished: 0, failed: 0, removed: 0 };

describe("rates", () => {
  test.each<[string, PodRow | undefined, PodRow | undefined, object]>([
    ["a new pod as created", undefined, row("waiting"), { created: 1 }],
    ["a new pod that runs at once as created and started", undefined, row("running"), { created: 1, started: 1 }],
    ["a pod that comes to run as started", row("starting"), row("running"), { started: 1 }],
    ["a pod that runs on as nothing", row("running"), row("running"), {}],
    ["a pod that succeeds as finished", row("running"), row("succeeded"), { finished: 1 }],
    ["a pod that fails as failed", row("starting"), row("failed"), { failed: 1 }],
    ["a pod that goes as removed", row("ending"), undefined, { removed: 1 }],
    ["the end of a pod that was never seen as nothing", undefined, undefined, {}],
  ])("count %s", (_, before, after, counts) => {
    const rates = new Rates();
    rates.begin(0);
    rates.observe(before, after, 10);
    expect(rates.counts(10).of).toEqual({ ...NONE, ...counts });
  });

  test("count nothing before all pods were read, and forget what is older than the window", () => {
    const rates = new Rates();
    rates.observe(undefined, row("running"), 0);
    rates.begin(1_000);
    rates.observe(row("starting"), row("running"), 2_000);
    rates.observe(row("running"), row("failed"), 60_000);
    expect(rates.counts(61_000)).toEqual({ ms: 60_000, of: { ...NONE, started: 1, failed: 1 } });
    expect(rates.counts(2_001 + RATE_WINDOW_MS)).toEqual({ ms: RATE_WINDOW_MS, of: { ...NONE, failed: 1 } });
    expect(rates.counts(10 * RATE_WINDOW_MS).of).toEqual(NONE);
  });
});
