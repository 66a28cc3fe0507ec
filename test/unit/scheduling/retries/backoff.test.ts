import { expect, test } from "vitest";
import { type BackoffGrowth, backoffAfterRefusal } from "../../../../src/scheduling/retries/backoff.ts";

/** The pauses after so many refusals of one kind, in seconds. */
function pauses(growth: BackoffGrowth, refusals: number): number[] {
  let state: Parameters<typeof backoffAfterRefusal>[0] = { refusalCount: 0 };
  return Array.from({ length: refusals }, () => {
    const { restMs, ...next } = backoffAfterRefusal(state, growth);
    state = next;
    return restMs / 1000;
  });
}

test.each<[BackoffGrowth, number[]]>([
  ["growing", [30, 60, 120, 240, 480, 600, 600]],
  ["steady", [30, 30, 30]],
  ["brief", [2, 30, 60]],
])("the pauses of a %s backoff are %j seconds", (growth, expected) => {
  expect(pauses(growth, expected.length)).toEqual(expected);
});

test("a brief pause is granted once, also when refusals of another kind came between", () => {
  const { restMs: _, ...first } = backoffAfterRefusal({ refusalCount: 0 }, "brief");
  const { restMs: __, ...second } = backoffAfterRefusal(first, "steady");
  expect(backoffAfterRefusal(second, "brief")).toMatchObject({ restMs: 30_000, hurried: true });
});
