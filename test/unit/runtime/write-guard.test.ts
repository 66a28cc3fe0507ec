import { beforeEach, describe, expect, test } from "vitest";
import type { KubeError, KubeErrorCode, KubeErrorFields } from "../../../src/kube/errors.ts";
import { REPEAT_EVENT_AFTER_MS } from "../../../src/runtime/told.ts";
import type { Wanted } from "../../../src/runtime/undone-writes.ts";
import { isTransient, WriteGuard } from "../../../src/runtime/write-guard.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const MINUTE = 60_000;
const A = { spec: "a" };

let clock: FakeClock;
let guard: WriteGuard;
beforeEach(() => {
  clock = new FakeClock();
  guard = new WriteGuard({ clock });
});

function failure(code: KubeErrorCode, detail = "no", request: Partial<KubeErrorFields> = {}): KubeError {
  const target = { cluster: "west", verb: "patch", resource: "pods", namespace: "team", objectName: "web-0" };
  return kubeError(code, detail, { ...target, ...request });
}

const DENIAL = 'pods "web-0" is forbidden: User "legation" cannot patch resource "pods" in API group ""';

describe("a held write", () => {
  test("is not sent for five minutes, and then may be", async () => {
    guard.hold("web", "labels", "NoEffect");
    expect(guard.heldUntil("web", "labels")).toBe(clock.now() + 5 * MINUTE);
    expect(guard.mayWrite("web", "status")).toBe(true);
    expect(guard.mayWrite("db", "labels")).toBe(true);
    await clock.advance(5 * MINUTE - 1);
    expect(guard.mayWrite("web", "labels")).toBe(false);
    await clock.advance(1);
    expect(guard.mayWrite("web", "labels")).toBe(true);
  });

  test("is sent at once with other content", () => {
    guard.hold("web", "copy", "Refused", { content: "version 7", holdMs: MINUTE });
    expect(guard.mayWrite("web", "copy", "version 7")).toBe(false);
    expect(guard.mayWrite("web", "copy", "version 8")).toBe(true);
  });

  test("is sent at once after it was done, or its object was forgotten", () => {
    guard.hold("web", "labels", "NoEffect");
    guard.done("web", "labels");
    expect(guard.mayWrite("web", "labels")).toBe(true);
    guard.hold("web", "labels", "NoEffect");
    guard.forget("web");
    expect(guard.of("web")).toBeUndefined();
  });

  test("is forgotten once it may be sent again and another is held", async () => {
    for (let patch = 0; patch < 100; patch += 1) {
      guard.hold("web", `patch ${patch}`, "NoEffect");
      await clock.advance(4 * MINUTE);
    }
    expect(Object.keys(guard.of("web") ?? {})).toEqual(["patch 98", "patch 99"]);
  });

  test.each<[number, number]>([
    [1, 10],
    [2, 20],
    [3, 40],
    [8, 1280],
    [9, 1440],
    [20, 1440],
  ])("with a growing hold, is held the %d. time for %d minutes", async (times, minutes) => {
    const hold = (): number => {
      guard.hold("web", "move to west", "NoEffect", { holdMs: 10 * MINUTE, maxHoldMs: 1440 * MINUTE });
      return (guard.heldUntil("web", "move to west") ?? 0) - clock.now();
    };
    for (let time = 1; time < times; time += 1) {
      await clock.advance(hold());
      guard.hold("web", "another", "NoEffect");
    }
    expect(hold()).toBe(minutes * MINUTE);
    guard.done("web", "move to west");
    expect(hold()).toBe(10 * MINUTE);
  });

  test.each(["constructor", "__proto__", "toString"])("may have the name %s", (write) => {
    expect(guard.mayWrite("web", write)).toBe(true);
    guard.hold("web", write, "NoEffect");
    expect(guard.mayWrite("web", write)).toBe(false);
    guard.done("web", write);
    expect(guard.mayWrite("web", write)).toBe(true);
  });
});

describe("a refused write", () => {
  test("is told once, and again before its event expires", async () => {
    const refuse = (): boolean => guard.refuse("web", "status", { message: "denied by policy" });
    expect([refuse(), refuse()]).toEqual([true, false]);
    await clock.advance(REPEAT_EVENT_AFTER_MS - 1);
    expect(refuse()).toBe(false);
    await clock.advance(1);
    expect([refuse(), refuse()]).toEqual([true, false]);
  });

  test("is told at once in other words, unless these differ in amounts only", () => {
    const used = (pods: number) => ({ message: `quota: pods=${pods}`, dedupe: "quota: pods" });
    expect(guard.refuse("web", "status", used(5))).toBe(true);
    expect(guard.refuse("web", "status", used(6))).toBe(false);
    expect(guard.get("web", "status")?.refusal).toMatchObject({ why: used(6), reported: used(5) });
    expect(guard.refuse("web", "status", { message: "denied by policy" })).toBe(true);
  });

  test("keeps the time of the first refusal until it is done", async () => {
    const since = clock.now();
    guard.refuse("web", "status", { message: "one" });
    await clock.advance(30 * MINUTE);
    guard.hold("web", "labels", "NoEffect");
    guard.refuse("web", "status", { message: "another" });
    expect(guard.get("web", "status")?.refusal?.since).toBe(since);
    expect(guard.done("web", "status")).toBe(true);
    expect(guard.done("web", "status")).toBe(false);
    expect(guard.refuse("web", "status", { message: "another" })).toBe(true);
  });
});

describe("a write that puts back what another manager changed", () => {
  const why = "tuner keeps changing .spec.size";
  const contested = (write = "size") => guard.contested("web", write, { holdMs: 10 * MINUTE, why });

  test("is held when it is undone for the third time within fifteen minutes, and then sent once in ten minutes", async () => {
    for (let time = 0; time < 2; time += 1) {
      expect(contested()).toBe(false);
      guard.putBack("web", "size");
      await clock.advance(MINUTE);
    }
    expect([contested(), contested("color")]).toEqual([true, false]);
    expect(guard.get("web", "size")?.why).toBe(why);
    for (let hold = 0; hold < 3; hold += 1) {
      await clock.advance(10 * MINUTE - 1);
      expect(contested()).toBe(true);
      await clock.advance(1);
      expect(contested()).toBe(false);
      guard.putBack("web", "size");
      expect(contested()).toBe(true);
    }
  });

  test("is sent again where the other manager undoes it seldom, or was forgotten", async () => {
    for (let time = 0; time < 3; time += 1) {
      guard.putBack("web", "size");
      await clock.advance(8 * MINUTE);
      expect(contested()).toBe(false);
    }
    guard.putBack("web", "size");
    expect(contested()).toBe(true);
    guard.forget("web");
    expect(contested()).toBe(false);
  });
});

test("foresees that one more write for the same purpose is held", async () => {
  for (let write = 0; write < 4; write += 1) {
    expect(guard.isAlmostUndone("web", A)).toBe(false);
    expect(guard.written("web", "copy", A)).toBe(false);
  }
  expect([guard.isAlmostUndone("web", A), guard.isAlmostUndone("web", { spec: "b" })]).toEqual([true, false]);
  expect(guard.written("web", "copy", A)).toBe(true);
});

describe("a failed write", () => {
  const at = async (ms: number, error: KubeError, object = "web", reachableSince?: number) => {
    await clock.advance(ms);
    return guard.failed(object, "labels", error, reachableSince);
  };

  test("is refused at once when the answer is final", async () => {
    expect(await at(0, failure("Forbidden", "exceeded quota: small"))).toBe("refused");
    expect(await at(0, failure("Unprocessable"))).toBe("refused");
  });

  test("is transient until it has failed for ten seconds on end", async () => {
    const error = failure("ServerError");
    expect([await at(0, error), await at(9_999, error), await at(1, error)]).toEqual([
      "transient",
      "transient",
      "lasting",
    ]);
    expect(await at(0, error, "db")).toBe("transient");
  });

  test("counts anew after an answer, after a pause, and after its cluster was found again", async () => {
    const error = failure("ServerError");
    await at(0, error);
    guard.answered("web", "labels");
    expect(await at(10_000, error)).toBe("transient");
    expect(await at(2 * MINUTE, error)).toBe("transient");
    expect(await at(10_000, error, "web", clock.now() + 5_000)).toBe("transient");
    expect(await at(5_000, error)).toBe("lasting");
  });

  test("that its caller judges may pass for ten seconds, and is failing until it is answered or for two minutes", async () => {
    const fails = (): boolean => guard.mayPass("web", "create");
    expect(guard.isFailing("web", "create")).toBe(false);
    expect(fails()).toBe(true);
    await clock.advance(10_000);
    expect(fails()).toBe(false);
    expect(guard.mayPass("web", "create", clock.now())).toBe(true);
    guard.answered("web", "create");
    expect(guard.isFailing("web", "create")).toBe(false);
    fails();
    await clock.advance(2 * MINUTE - 1);
    expect(guard.isFailing("web", "create")).toBe(true);
    await clock.advance(1);
    expect(guard.isFailing("web", "create")).toBe(false);
  });

  test("counts for all objects of the resource when the cluster denies the right", async () => {
    await at(0, failure("Forbidden", DENIAL));
    expect(await at(10_000, failure("Forbidden", DENIAL, { resource: "services" }))).toBe("transient");
    expect(await at(0, failure("Forbidden", DENIAL, { cluster: "east" }))).toBe("transient");
    expect(await at(0, failure("Forbidden", DENIAL, { objectName: "web-1" }), "db")).toBe("lasting");
  });

  test.each<[KubeErrorCode, string, boolean]>([
    ["ServerError", "no", true],
    ["TooManyRequests", "no", true],
    ["AnswerLost", "no", true],
    ["BadAnswer", "no", true],
    ["Forbidden", DENIAL, true],
    ["Forbidden", "exceeded quota: small", false],
    ["Conflict", "no", false],
    ["NotSent", "no", false],
  ])("with %s (%s) may pass: %s", (code, detail, expected) => {
    expect(isTransient(failure(code, detail))).toBe(expected);
  });
});

describe("a write that another manager undoes", () => {
  test("is held from the fifth time within a minute on, and again when it is written later", async () => {
    const write = (object = "web"): boolean => guard.written(object, "labels", A);
    expect([1, 2, 3, 4].map(() => write())).toEqual([false, false, false, false]);
    expect(guard.mayWrite("web", "labels")).toBe(true);
    expect(write()).toBe(true);
    expect(guard.get("web", "labels")).toMatchObject({ reason: "Undone", until: clock.now() + 5 * MINUTE });
    expect(write("db")).toBe(false);
    expect(write()).toBe(true);
    await clock.advance(5 * MINUTE);
    expect(write()).toBe(false);
    expect(guard.mayWrite("web", "labels")).toBe(true);
  });

  test("is held for its content only", () => {
    for (let time = 0; time < 5; time += 1) guard.written("web", "copy", { version: "7" }, { content: "7" });
    expect(guard.mayWrite("web", "copy", "7")).toBe(false);
    expect(guard.mayWrite("web", "copy", "8")).toBe(true);
  });

  test("counts anew after a write for another purpose", () => {
    const written = ["a", "a", "a", "a", "b", "a", "a", "a", "a"].map((spec) => guard.written("web", "x", { spec }));
    expect(written).not.toContain(true);
    expect(guard.written("web", "x", A)).toBe(true);
  });

  test.each<[string, readonly Wanted[], boolean]>([
    ["a part that is wanted otherwise in between counts anew", [{ a: "0", b: "0" }, { a: "1" }], false],
    ["a larger write with another value counts anew", [{ a: "0" }, { a: "1", b: "1" }], false],
    ["a part that is undone by itself counts", [{ a: "0", b: "0" }, { a: "0" }], true],
    ["a part that is undone beside another counts", [{ a: "0" }, { b: "0" }], true],
  ])("%s", (_what, writes, expected) => {
    const results = Array.from({ length: 10 }, () => writes.map((wanted) => guard.written("web", "x", wanted)));
    expect(results.flat().some((isUndone) => isUndone)).toBe(expected);
  });

  test("counts each write for a minute, also while other objects are written", async () => {
    const results: boolean[] = [];
    for (const [pauseMs, object] of [
      [0, "web"],
      [10_000, "web"],
      [10_000, "web"],
      [10_000, "web"],
      [29_000, "db"],
      [1_000, "web"],
      [9_000, "web"],
    ] as const) {
      await clock.advance(pauseMs);
      results.push(guard.written(object, "x", A));
    }
    expect(results).toEqual([false, false, false, false, false, false, true]);
  });

  test("is mended each time when it is undone now and then", async () => {
    for (let time = 0; time < 20; time += 1) {
      expect(guard.written("web", "x", A)).toBe(false);
      await clock.advance(15_001);
    }
  });

  test("counts anew once its object is forgotten", () => {
    for (let time = 0; time < 4; time += 1) guard.written("web", "x", A);
    guard.forget("web");
    expect(guard.written("web", "x", A)).toBe(false);
  });
});
