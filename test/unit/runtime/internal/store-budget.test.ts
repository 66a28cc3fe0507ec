import { expect, test } from "vitest";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import { ByteBudget } from "../../../../src/kube/limits.ts";
import { StagedList, StoreCharges } from "../../../../src/runtime/internal/store-budget.ts";

const a = objectKey({ namespace: "team", name: "a" });
const b = objectKey({ namespace: "team", name: "b" });
const object = { metadata: { namespace: "team", name: "a", uid: "u", resourceVersion: "1" } };

/** Returns the rest of a budget of 100 bytes. */
function leftOf(budget: ByteBudget): number {
  let left = 100;
  while (!budget.hold(left)) left -= 1;
  budget.hold(-left);
  return left;
}

test("charges an object's last size until it goes, and refuses a size beyond the budget", () => {
  const budget = new ByteBudget(100);
  const charges = new StoreCharges(budget);
  expect([charges.charge(a, 60), charges.charge(b, 41), charges.charge(b, 40)]).toEqual([true, false, true]);
  expect([charges.charge(a, 61), charges.of(a), leftOf(budget)]).toEqual([false, 60, 0]);
  expect([charges.charge(a, 20), leftOf(budget)]).toEqual([true, 40]);
  expect([charges.charge(b, 0), charges.of(b), leftOf(budget)]).toEqual([true, 0, 80]);
  charges.release();
  expect(leftOf(budget)).toBe(100);
});

test("staged sizes replace all charges", () => {
  const budget = new ByteBudget(100);
  const charges = new StoreCharges(budget);
  charges.charge(a, 30);
  charges.charge(b, 30);
  const staged = new StagedList(budget);
  expect(staged.add(a, object, 50, charges.of(a))).toBe(true);
  charges.commit(staged);
  expect([charges.of(a), charges.of(b), leftOf(budget)]).toEqual([50, 0, 50]);
});

test("counts nothing without a budget", () => {
  const charges = new StoreCharges(undefined);
  expect([charges.charge(a, 2 ** 40), charges.of(a)]).toEqual([true, 0]);
});
