import { beforeEach, describe, expect, test, vi } from "vitest";
import { Refusals } from "../../../../src/controllers/claims/refusals.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const FOR_MS = 60_000;
let clock: FakeClock;
let refusals: Refusals;
const onForgotten = vi.fn<() => void>();
beforeEach(() => {
  clock = new FakeClock();
  refusals = new Refusals({ clock, forMs: FOR_MS });
  onForgotten.mockClear();
});

describe("a refusal", () => {
  test("is of one object and one member, not of another object that has its name later", () => {
    refusals.note("uid-1", "west", "a quota", onForgotten);
    expect(refusals.of("uid-1", "west")).toBe("a quota");
    expect(refusals.of("uid-1", "east")).toBeUndefined();
    expect(refusals.of("uid-2", "west")).toBeUndefined();
  });

  test("is forgotten after a while, which is told once", async () => {
    refusals.note("uid-1", "west", "a quota", onForgotten);
    refusals.note("uid-1", "east", "a foreign claim", onForgotten);
    await clock.advance(FOR_MS - 1);
    expect(refusals.of("uid-1", "west")).toBe("a quota");
    expect(onForgotten).not.toHaveBeenCalled();
    await clock.advance(1);
    expect(refusals.of("uid-1", "west")).toBeUndefined();
    expect(refusals.of("uid-1", "east")).toBeUndefined();
    expect(onForgotten).toHaveBeenCalledTimes(2);
  });

  test("that comes again counts from then, and leaves no timer of the earlier one", async () => {
    refusals.note("uid-1", "west", "a quota", onForgotten);
    await clock.advance(FOR_MS / 2);
    refusals.note("uid-1", "west", "a policy", onForgotten);
    expect(clock.pending).toBe(1);
    await clock.advance(FOR_MS - 1);
    expect(refusals.of("uid-1", "west")).toBe("a policy");
    await clock.advance(1);
    expect(onForgotten).toHaveBeenCalledOnce();
  });

  test("leaves nothing behind when all ends", () => {
    refusals.note("uid-1", "west", "a quota", onForgotten);
    refusals.stop();
    expect(clock.pending).toBe(0);
    expect(refusals.of("uid-1", "west")).toBeUndefined();
  });
});
