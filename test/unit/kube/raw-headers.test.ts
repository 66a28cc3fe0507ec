import { expect, test } from "vitest";
import { headerPairs } from "../../../src/kube/raw-headers.ts";

test("headers come in their order, repeated ones too, and a name without a value does not", () => {
  expect([...headerPairs(["Accept", "a", "ACCEPT", "b", "X-Alone"])]).toEqual([
    ["accept", "a", "Accept"],
    ["accept", "b", "ACCEPT"],
  ]);
});
