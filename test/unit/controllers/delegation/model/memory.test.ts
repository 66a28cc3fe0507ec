import { describe, expect, test } from "vitest";
import { Memories } from "../../../../../src/controllers/delegation/placement/memories.ts";

const now = 1_000_000;

describe("what is remembered of a proxy", () => {
  test("is nothing at first, and that nobody can have acted on it", () => {
    expect(new Memories({ now: () => 0 }).of("uid-1")).toEqual({ fresh: true, attempts: {} });
  });

  test("is that a member may have its delegate, until that member shows it", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteAttempt("uid-1", "west", now);
    memories.noteUncertain("uid-1", "west");
    memories.noteFound("uid-1", "east", now);
    expect(memories.of("uid-1").uncertain).toBe("west");
    memories.noteFound("uid-1", "west", now);
    expect(memories.of("uid-1").uncertain).toBeUndefined();
  });

  test("is since when a delegate of an earlier leader's was seen", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteInherited("uid-1");
    memories.noteFound("uid-1", "west", now);
    memories.noteFound("uid-1", "west", now + 5_000);
    expect(memories.of("uid-1").attempts.west).toEqual({ since: now, refusals: 0 });
  });

  test("is which members were asked for a pod of an earlier leader's and have not got it, as long as each is reached in the same way", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteInherited("uid-1");
    for (const member of ["west", "east"]) memories.noteDenied("uid-1", member);
    memories.noteUnproven("uid-1", "west");
    expect([...(memories.of("uid-1").denied ?? [])]).toEqual(["east"]);
    memories.forget("uid-1");
    memories.noteDenied("uid-1", "east");
    expect(memories.of("uid-1")).toEqual({ fresh: true, attempts: {} });
  });

  // What the model check (test/unit/model) has found: done late, it would be a second delegate beside the one elsewhere.
  test("is that a create whose answer was lost may be done for a whole attempt's time from then on", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteAttempt("uid-1", "west", now, true);
    memories.noteUncertain("uid-1", "west", { at: now + 29_000, message: "reset" });
    memories.noteFound("uid-1", "west", now + 29_100);
    expect(memories.of("uid-1").attempts.west).toEqual({ since: now + 29_000, refusals: 0 });
  });

  test("is a refusal that lasts as long as before when the pod was let ask ahead of its end", () => {
    const refusal = { cluster: "west", reason: "RefusedByMember", message: "exceeded quota" } as const;
    const memories = new Memories({ now: () => 0 });
    memories.noteOpen("uid-1", "west", now);
    memories.noteRefusal("uid-1", refusal, 1, now);
    const rest = memories.noteRefusal("uid-1", refusal, 1, now);
    for (const wait of ["growing", "brief"] as const) {
      memories.noteOpen("uid-1", "west", now + 1);
      expect(memories.of("uid-1").attempts.west).toMatchObject({ refusal, until: now + 1 });
      memories.noteAttempt("uid-1", "west", now + 1);
      memories.noteOpen("uid-1", "west", now + 2);
      expect(memories.of("uid-1").attempts.west).not.toHaveProperty("until");
      expect(memories.noteRefusal("uid-1", refusal, 1, now + 2, wait)).toBe(rest);
    }
    expect(memories.noteRefusal("uid-1", refusal, 1, now)).toBe(2 * rest);
  });

  test("is a refusal that is waited for longer each time, unless it passes by itself", () => {
    const refusal = { cluster: "west", reason: "RefusedByMember", message: "no" } as const;
    const waits = (wait: "steady" | "growing"): number[] => {
      const memories = new Memories({ now: () => 0 });
      return [1, 2, 3].map(() => {
        memories.noteAttempt("uid-1", "west", now);
        memories.noteRefusal("uid-1", refusal, 1, now, wait);
        return (memories.of("uid-1").attempts.west?.until ?? 0) - now;
      });
    };
    expect(waits("growing")).toEqual([30_000, 60_000, 120_000]);
    expect(waits("steady")).toEqual([30_000, 30_000, 30_000]);
  });

  test("is since when something is in the way of an attempt, until a delegate is made", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteAttempt("uid-1", "west", now);
    expect(memories.noteFailing("uid-1", "west", now)).toBe(now);
    expect(memories.noteFailing("uid-1", "west", now + 5_000)).toBe(now);
    memories.noteMade("uid-1", "west", "delegate-uid");
    expect(memories.noteFailing("uid-1", "west", now + 9_000)).toBe(now + 9_000);
  });

  test("is since when it was refused, whatever else failed before or between", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteAttempt("uid-1", "west", now);
    expect(memories.noteFailing("uid-1", "west", now)).toBe(now);
    expect(memories.noteFailing("uid-1", "west", now + 5_000, true)).toBe(now + 5_000);
    expect(memories.noteFailing("uid-1", "west", now + 6_000)).toBe(now);
    expect(memories.noteFailing("uid-1", "west", now + 7_000, true)).toBe(now + 5_000);
  });

  test("is since when an attempt is under way, however often its create is sent", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteAttempt("uid-1", "west", now);
    memories.noteAttempt("uid-1", "west", now + 5_000);
    memories.noteFound("uid-1", "west", now + 6_000);
    expect(memories.of("uid-1").attempts.west?.since).toBe(now);
  });

  test("is a refusal for longer each time", () => {
    const memories = new Memories({ now: () => 0 });
    const refusal = { cluster: "west", reason: "Unschedulable", message: "no" } as const;
    const untils = [1, 2, 3].map(() => {
      memories.noteRefusal("uid-1", refusal, 1, now);
      return (memories.of("uid-1").attempts.west?.until ?? 0) - now;
    });
    expect(untils).toEqual([30_000, 60_000, 120_000]);
  });

  test("is a refusal for ten minutes at most, however often it was refused", () => {
    const memories = new Memories({ now: () => 0 });
    const refusal = { cluster: "west", reason: "RefusedByMember", message: "no" } as const;
    for (let refused = 0; refused < 12; refused += 1) memories.noteRefusal("uid-1", refusal, 1, now);
    expect(memories.of("uid-1").attempts.west?.until).toBe(now + 600_000);
  });

  test("is forgotten when it is bound", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteUncertain("uid-1", "west");
    memories.forget("uid-1");
    expect(memories.of("uid-1")).toEqual({ fresh: true, attempts: {} });
  });

  test("is which writes are held, for five minutes each", () => {
    const clock = { at: now };
    const memories = new Memories({ now: () => clock.at });
    const until = () => Object.entries(memories.of("uid-1").held ?? {}).map(([write, held]) => [write, held.until]);
    memories.writes.hold("uid-1", "a", "NoEffect");
    clock.at = now + 60_000;
    memories.writes.hold("uid-1", "b", "NoEffect");
    expect(Object.fromEntries(until())).toEqual({ a: now + 300_000, b: now + 360_000 });
    clock.at = now + 300_000;
    memories.writes.hold("uid-1", "c", "NoEffect");
    expect(until().map(([write]) => write)).toEqual(["b", "c"]);
    memories.forget("uid-1");
    expect(memories.of("uid-1").held).toBeUndefined();
  });
});
