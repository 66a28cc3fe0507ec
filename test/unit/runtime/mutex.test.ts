import { expect, test } from "vitest";
import { Mutex } from "../../../src/runtime/mutex.ts";
import { settle } from "../../support/clock/fake-clock.ts";

const never = new AbortController().signal;

/** Asks for the mutex; `got` has the name once it is there. */
function ask(mutex: Mutex, name: string, got: string[], signal: AbortSignal = never): Promise<() => void> {
  return mutex.lock(signal).then((unlock) => {
    got.push(name);
    return unlock;
  });
}

test("gives the mutex to one caller at a time, in the order in which they asked", async () => {
  const mutex = new Mutex();
  const got: string[] = [];
  const [first, second, third] = ["first", "second", "third"].map((name) => ask(mutex, name, got));
  (await first)?.();
  const unlock = await second;
  await settle();
  expect(got).toEqual(["first", "second"]);
  unlock?.();
  await third;
  expect(got).toEqual(["first", "second", "third"]);
});

test("passes over a caller that gave up, and not before its turn", async () => {
  const mutex = new Mutex();
  const got: string[] = [];
  const unlock = await mutex.lock(never);
  const leaving = new AbortController();
  const second = ask(mutex, "second", got, leaving.signal);
  const third = ask(mutex, "third", got);
  leaving.abort(new Error("stopped"));
  await expect(second).rejects.toThrow("stopped");
  await settle();
  expect(got).toEqual([]);
  unlock();
  await third;
  expect(got).toEqual(["third"]);
});
