import { expect, test } from "vitest";
import { Told } from "../../../../src/controllers/home-api/told.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const HOUR = 60 * 60_000;

test("a namespace is told once an hour for each member", async () => {
  const clock = new FakeClock();
  const told = new Told(clock);
  expect(told.lately("west", "team")).toBe(false);
  told.note("west", "team");
  expect([told.lately("west", "team"), told.lately("east", "team")]).toEqual([true, false]);
  await clock.advance(HOUR);
  expect(told.lately("west", "team")).toBe(false);
});

test("members and namespaces that are gone are not kept in mind for ever", async () => {
  const clock = new FakeClock();
  const told = new Told(clock);
  for (let number = 0; number < 100; number += 1) told.note("west", `ci-${number}`);
  await clock.advance(HOUR);
  told.note("west", "team");
  expect(told.size).toBe(1);
});
