import { expect, test } from "vitest";
import { InFlight } from "../../../src/access/in-flight.ts";

test("counts requests by user and in all, each end once", () => {
  const inFlight = new InFlight({ ofUser: 2, ofAll: 3 });
  const first = inFlight.begin("alice");
  expect(inFlight.begin("alice")).toBeDefined();
  expect(inFlight.begin("alice")).toBeUndefined();
  expect(inFlight.begin("bob")).toBeDefined();
  expect(inFlight.begin("carol")).toBeUndefined();
  first?.();
  first?.();
  expect(inFlight.size).toBe(2);
  expect(inFlight.begin("carol")).toBeDefined();
  expect(inFlight.begin("alice")).toBeUndefined();
});
