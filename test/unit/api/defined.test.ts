import { expect, test } from "vitest";
import { defined } from "../../../src/api/defined.ts";

test("leaves out undefined fields, and keeps all others", () => {
  const fields = defined({ a: undefined, b: 0, c: false, d: "", e: null });
  expect(Object.keys(fields)).toEqual(["b", "c", "d", "e"]);
  expect(fields).toEqual({ b: 0, c: false, d: "", e: null });
});
