import { expect, test } from "vitest";
import { memoized } from "../../../src/api/memoized.ts";

test("computes once per object, also what is undefined", () => {
  const asked: object[] = [];
  const of = memoized((key: { readonly value?: number }) => {
    asked.push(key);
    return key.value;
  });
  const [one, other] = [{ value: 1 }, {}];
  expect([of(one), of(other), of(one), of(other)]).toEqual([1, undefined, 1, undefined]);
  expect(asked).toEqual([one, other]);
});
