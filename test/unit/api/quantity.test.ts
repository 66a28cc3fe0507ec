import { expect, test } from "vitest";
import { formatAmounts, writeQuantity } from "../../../src/api/quantity.ts";

test.each([
  ["memory", 2 ** 30, "1Gi"],
  ["memory", 1536 * 2 ** 20, "1536Mi"],
  ["memory", 3 * 2 ** 10, "3Ki"],
  ["memory", 1000, "1000"],
  ["memory", 0, "0"],
  ["cpu", 1.5, "1500m"],
  ["nvidia.com/gpu", 4, "4"],
])("formats %s of %d for people as %s", (resource, value, text) => {
  expect(writeQuantity(resource, value)).toBe(text);
});

test("formats memory of nodes in Ki, as kubelets do", () => {
  expect(formatAmounts({ memory: 2 ** 30 })).toEqual({ memory: "1048576Ki" });
});
