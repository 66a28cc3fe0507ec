import { expect, test } from "vitest";
import { pendingPods, whyNowhere } from "../../../../src/cli/explain/pending.ts";

test("tells pods of one reason together, and those of another apart", () => {
  const full = { reason: "NotPlaced", message: "west: full" };
  const gated = { reason: "SchedulingGated", message: "waits" };
  expect(
    pendingPods([
      { name: "a", ...full },
      { name: "b", ...gated },
      { name: "c", ...full },
    ]),
  ).toEqual([
    { pods: ["a", "c"], ...full },
    { pods: ["b"], ...gated },
  ]);
});

test("says why no member gets an object only where that is said of no single member", () => {
  const nowhere = { clusters: [], others: [], misfits: [] };
  expect(whyNowhere(nowhere)).toBe("no member cluster has joined: see `legation join`");
  expect(whyNowhere({ ...nowhere, problem: "no" })).toBe("no");
  expect(whyNowhere({ ...nowhere, others: [{ cluster: "west", message: "full" }] })).toBeUndefined();
});
