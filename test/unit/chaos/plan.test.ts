import { expect, test } from "vitest";
import { FAULTS, planOf } from "../../chaos/plan.ts";

test("the same seed is the same plan, and another one another", () => {
  expect(planOf(7, 60_000)).toEqual(planOf(7, 60_000));
  expect(planOf(8, 60_000)).not.toEqual(planOf(7, 60_000));
});

test("a plan is in order, and a long one has every fault", () => {
  const plan = planOf(1, 3_600_000);
  expect(plan.map(({ at }) => at)).toEqual(plan.map(({ at }) => at).sort((a, b) => a - b));
  const faults = new Set(plan.flatMap((happening) => (happening.type === "fault" ? [happening.fault] : [])));
  expect([...faults].sort()).toEqual([...FAULTS].sort());
});
