import { beforeEach, expect, test } from "vitest";
import type { Expectation } from "../../../src/runtime/controller.ts";
import { sendGuarded } from "../../../src/runtime/guarded-write.ts";
import { WriteGuard } from "../../../src/runtime/write-guard.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const WRITE = "status";

let clock: FakeClock;
let guard: WriteGuard;
let told: string[];

beforeEach(() => {
  clock = new FakeClock();
  guard = new WriteGuard({ clock });
  told = [];
});

function send(answer: () => Promise<string>, content?: string): Promise<Expectation<string> | undefined> {
  return sendGuarded<string, string, string>({
    guard,
    object: "one",
    write: WRITE,
    ...(content === undefined ? {} : { content: () => content }),
    send: answer,
    onWritten: (version) => (observed) => observed !== version,
    onRefused: (detail) => told.push(detail),
  });
}

function failing(...[code, message]: Parameters<typeof kubeError>): () => Promise<string> {
  return () => Promise.reject(kubeError(code, message));
}

test("an answered write is expected in the watch", async () => {
  const expectation = await send(() => Promise.resolve("1"));
  expect([expectation?.("1"), expectation?.("2")]).toEqual([false, true]);
});

test.each(["Conflict", "NotFound", "AlreadyExists"] as const)("%s leaves all to the watch", async (code) => {
  expect(await send(failing(code, "too late"))).toBeUndefined();
  expect([told, guard.mayWrite("one", WRITE)]).toEqual([[], true]);
});

test("a refused write is told and held for its content alone", async () => {
  const expectation = await send(failing("Unprocessable", "no such field"), "a");
  expect(expectation?.("1")).toBe(true);
  expect(told).toEqual(["no such field"]);
  expect([guard.mayWrite("one", WRITE, "a"), guard.mayWrite("one", WRITE, "b")]).toEqual([false, true]);
});

test("a refused write without content is held whatever it would say", async () => {
  await send(failing("Unprocessable", "no"));
  expect(guard.mayWrite("one", WRITE, "b")).toBe(false);
});

test.each(["ServerError", "AnswerLost"] as const)("%s is the caller's to repeat", async (code) => {
  await expect(send(failing(code, "not now"))).rejects.toThrow("not now");
  expect([told, guard.mayWrite("one", WRITE)]).toEqual([[], true]);
});
