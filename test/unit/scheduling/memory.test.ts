import { describe, expect, test } from "vitest";
import { Memories } from "../../../src/scheduling/memories.ts";
import { delegateCreationIn, refusedCreationIn } from "../../../src/scheduling/memory.ts";

const now = 1_000_000;

describe("the memory of a proxy", () => {
  test("is empty at first, and marks the proxy as new under this leader", () => {
    expect(new Memories({ now: () => 0 }).of("uid-1")).toEqual({ fresh: true, attempts: {} });
  });

  test("holds that a member may have the delegate, until the member shows it", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteAttempt("uid-1", "west", now);
    memories.noteUncertain("uid-1", "west");
    memories.noteFound("uid-1", "east", now);
    expect(memories.of("uid-1").uncertain).toBe("west");
    memories.noteFound("uid-1", "west", now);
    expect(memories.of("uid-1").uncertain).toBeUndefined();
  });

  test("holds since when a delegate of an earlier leader was seen", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteInherited("uid-1");
    memories.noteFound("uid-1", "west", now);
    memories.noteFound("uid-1", "west", now + 5_000);
    expect(memories.of("uid-1").attempts.west).toEqual({ since: now, refusalCount: 0 });
  });

  test("holds which members were asked for a pod of an earlier leader and lack it, while each keeps its connection", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteInherited("uid-1");
    for (const member of ["west", "east"]) memories.noteConfirmedAbsent("uid-1", member);
    memories.noteUnproven("uid-1", "west");
    expect([...(memories.of("uid-1").confirmedAbsent ?? [])]).toEqual(["east"]);
    memories.forget("uid-1");
    memories.noteConfirmedAbsent("uid-1", "east");
    expect(memories.of("uid-1")).toEqual({ fresh: true, attempts: {} });
  });

  // The model check (test/unit/model) has found this: done late, it would be a second delegate.
  test("holds that a create without a response may happen for a whole attempt's time", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteAttempt("uid-1", "west", now, true);
    memories.noteUncertain("uid-1", "west", { at: now + 29_000, message: "reset" });
    memories.noteFound("uid-1", "west", now + 29_100);
    expect(memories.of("uid-1").attempts.west).toEqual({ since: now + 29_000, refusalCount: 0 });
  });

  test("keeps a refusal's duration when the pod was tried ahead of its end", () => {
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

  test("holds a refusal with a growing backoff, unless it passes by itself", () => {
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

  const refused = { cluster: "west", reason: "RefusedByMember", message: "no" } as const;

  test.each<[string, (memories: Memories) => void]>([
    ["a delegate is created", (memories) => memories.noteMade("uid-1", "west", "delegate-uid")],
    ["the member refuses the pod", (memories) => void memories.noteRefusal("uid-1", refused, 1, now)],
    ["the response is lost", (memories) => memories.noteUncertain("uid-1", "west", { at: now, message: "reset" })],
  ])("counts a failing create until %s", (_, answer) => {
    let at = now;
    const memories = new Memories({ now: () => at });
    const mayPass = (): boolean => memories.writes.mayPass("uid-1", delegateCreationIn("west"));
    expect(mayPass()).toBe(true);
    at += 10_000;
    expect(mayPass()).toBe(false);
    expect(memories.writes.isFailing("uid-1", delegateCreationIn("west"))).toBe(true);
    answer(memories);
    expect(memories.writes.isFailing("uid-1", delegateCreationIn("west"))).toBe(false);
    expect(mayPass()).toBe(true);
  });

  test("counts a refused create by itself, whatever else failed before or between", () => {
    let at = now;
    const { writes } = new Memories({ now: () => at });
    const fails = (write: string): boolean => writes.mayPass("uid-1", write);
    expect(fails(delegateCreationIn("west"))).toBe(true);
    at += 5_000;
    expect(fails(refusedCreationIn("west"))).toBe(true);
    at += 6_000;
    expect([fails(delegateCreationIn("west")), fails(refusedCreationIn("west"))]).toEqual([false, true]);
    at += 4_000;
    expect(fails(refusedCreationIn("west"))).toBe(false);
  });

  test("holds since when an attempt lasts, however often its create is sent", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteAttempt("uid-1", "west", now);
    memories.noteAttempt("uid-1", "west", now + 5_000);
    memories.noteFound("uid-1", "west", now + 6_000);
    expect(memories.of("uid-1").attempts.west?.since).toBe(now);
  });

  test("lengthens a refusal each time", () => {
    const memories = new Memories({ now: () => 0 });
    const refusal = { cluster: "west", reason: "Unschedulable", message: "no" } as const;
    const untils = [1, 2, 3].map(() => {
      memories.noteRefusal("uid-1", refusal, 1, now);
      return (memories.of("uid-1").attempts.west?.until ?? 0) - now;
    });
    expect(untils).toEqual([30_000, 60_000, 120_000]);
  });

  test("limits a refusal to ten minutes", () => {
    const memories = new Memories({ now: () => 0 });
    const refusal = { cluster: "west", reason: "RefusedByMember", message: "no" } as const;
    for (let refused = 0; refused < 12; refused += 1) memories.noteRefusal("uid-1", refusal, 1, now);
    expect(memories.of("uid-1").attempts.west?.until).toBe(now + 600_000);
  });

  test("is forgotten when the pod is bound", () => {
    const memories = new Memories({ now: () => 0 });
    memories.noteUncertain("uid-1", "west");
    memories.forget("uid-1");
    expect(memories.of("uid-1")).toEqual({ fresh: true, attempts: {} });
  });

  test("holds which writes are held, for five minutes each", () => {
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
