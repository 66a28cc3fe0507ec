import { describe, expect, test } from "vitest";
import { Promptness } from "../../../src/clusters/promptness.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

function start(): { clock: FakeClock; promptness: Promptness; changes: boolean[] } {
  const clock = new FakeClock();
  const changes: boolean[] = [];
  const promptness: Promptness = new Promptness({ clock, onChange: () => changes.push(promptness.overdue) });
  return { clock, promptness, changes };
}

describe("a member's answer", () => {
  test("that comes in time changes nothing, and leaves no timer", async () => {
    const { clock, promptness, changes } = start();
    expect(await promptness.of(Promise.resolve("made"))).toBe("made");
    await clock.advance(60_000);
    expect(changes).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  test("is overdue after three seconds, until the last that is late has come", async () => {
    const { clock, promptness, changes } = start();
    const first = Promise.withResolvers<void>();
    const second = Promise.withResolvers<void>();
    const both = [promptness.of(first.promise), promptness.of(second.promise)];
    await clock.advance(2_999);
    expect(promptness.overdue).toBe(false);
    await clock.advance(1);
    expect(promptness.overdue).toBe(true);
    first.resolve();
    await both[0];
    expect(promptness.overdue).toBe(true);
    second.resolve();
    await both[1];
    expect(changes).toEqual([true, false]);
  });

  test("that failed is overdue until the member answers again", async () => {
    const { promptness, changes } = start();
    await expect(promptness.of(Promise.reject(new Error("cut")))).rejects.toThrow("cut");
    promptness.failed();
    promptness.failed();
    expect(promptness.overdue).toBe(true);
    promptness.answered();
    expect(changes).toEqual([true, false]);
  });
});
