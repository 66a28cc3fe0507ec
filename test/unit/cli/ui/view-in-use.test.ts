import { expect, test } from "vitest";
import type { LiveView } from "../../../../src/cli/ui/live-view.ts";
import { ViewInUse } from "../../../../src/cli/ui/view-in-use.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

test("a view runs while a page has it, and half a minute longer, so that a page that is loaded again finds it", async () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const create = () => {
    const view: Pick<LiveView, "start" | "stop"> = {
      start: () => void told.push("start"),
      stop: async () => void told.push("stop"),
    };
    return view as LiveView;
  };
  const view = new ViewInUse(create, clock);
  const first = view.take();
  view.giveBack();
  await clock.advance(29_000);
  expect(view.take()).toBe(first);
  expect([view.users, told]).toEqual([1, ["start"]]);
  view.giveBack();
  await clock.advance(30_000);
  expect(told).toEqual(["start", "stop"]);
  expect(view.take()).not.toBe(first);
  await view.stop();
  expect(told).toEqual(["start", "stop", "start", "stop"]);
  expect(clock.pending).toBe(0);
});
