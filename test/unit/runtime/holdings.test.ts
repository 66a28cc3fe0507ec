import { expect, test } from "vitest";
import { objectKey } from "../../../src/api/kubernetes.ts";
import { ByteBudget } from "../../../src/kube/limits.ts";
import { Holdings } from "../../../src/runtime/holdings.ts";
import { Staging } from "../../../src/runtime/staging.ts";

const a = objectKey({ namespace: "team", name: "a" });
const b = objectKey({ namespace: "team", name: "b" });
const object = { metadata: { namespace: "team", name: "a", uid: "u", resourceVersion: "1" } };

/** What is left of a budget of 100 bytes. */
function leftOf(budget: ByteBudget): number {
  let left = 100;
  while (!budget.hold(left)) left -= 1;
  budget.hold(-left);
  return left;
}

test("objects hold what they were last charged, until they go; what there is no room for holds nothing more", () => {
  const budget = new ByteBudget(100);
  const holdings = new Holdings(budget);
  expect([holdings.charge(a, 60), holdings.charge(b, 41), holdings.charge(b, 40)]).toEqual([true, false, true]);
  expect([holdings.charge(a, 61), holdings.of(a), leftOf(budget)]).toEqual([false, 60, 0]);
  expect([holdings.charge(a, 20), leftOf(budget)]).toEqual([true, 40]);
  expect([holdings.charge(b, 0), holdings.of(b), leftOf(budget)]).toEqual([true, 0, 80]);
  holdings.release();
  expect(leftOf(budget)).toBe(100);
});

test("staged sizes replace all charges", () => {
  const budget = new ByteBudget(100);
  const holdings = new Holdings(budget);
  holdings.charge(a, 30);
  holdings.charge(b, 30);
  const staging = new Staging(budget);
  expect(staging.add(a, object, 50, holdings.of(a))).toBe(true);
  holdings.settle(staging);
  expect([holdings.of(a), holdings.of(b), leftOf(budget)]).toEqual([50, 0, 50]);
});

test("without a budget there is room for everything, and nothing is counted", () => {
  const holdings = new Holdings(undefined);
  expect([holdings.charge(a, 2 ** 40), holdings.of(a)]).toEqual([true, 0]);
});
