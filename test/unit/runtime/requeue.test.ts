import { expect, test } from "vitest";
import { lookAgain, soonest } from "../../../src/runtime/requeue.ts";

test("a key is looked at again at the first of the known times, and not at all without one", () => {
  expect([soonest(5, undefined, 3), soonest(undefined), soonest()]).toEqual([3, undefined, undefined]);
  expect(lookAgain(undefined, 7, 9)).toEqual({ requeueAt: 7 });
  expect(lookAgain(undefined)).toEqual({});
});
