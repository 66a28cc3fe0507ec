import { expect, test, vi } from "vitest";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import { WaitLimit } from "../../../../src/controllers/services/wait-limit.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

const key = objectKey({ namespace: "team", name: "p" });

function patience() {
  const clock = new FakeClock();
  const onChange = vi.fn();
  return { clock, onChange, made: new WaitLimit({ clock, onChange }) };
}

test("lets a pod wait five seconds for its Services, whatever it tries meanwhile", async () => {
  const { clock, onChange, made } = patience();
  made.wait(key, "u");
  await clock.advance(3000);
  made.wait(key, "u");
  await clock.advance(1999);
  expect([made.over("u"), onChange.mock.calls]).toEqual([false, []]);
  await clock.advance(1);
  expect([made.over("u"), onChange.mock.calls]).toEqual([true, [[key]]]);
});

test("wakes waiting pods with their namespace, and none that has waited long enough", async () => {
  const { clock, onChange, made } = patience();
  made.wait(key, "u");
  made.wake("other");
  expect(onChange).not.toHaveBeenCalled();
  made.wake("team");
  made.wakeAll();
  expect(onChange.mock.calls).toEqual([[key], [key]]);
  await clock.advance(5000);
  onChange.mockClear();
  made.wake("team");
  made.wakeAll();
  expect(onChange).not.toHaveBeenCalled();
});

test("lets a placed pod wait for nothing", async () => {
  const { clock, onChange, made } = patience();
  made.wait(key, "u");
  made.forget("u");
  await clock.advance(10_000);
  expect([made.over("u"), onChange.mock.calls]).toEqual([false, []]);
  made.wait(key, "v");
  made.stop();
  await clock.advance(10_000);
  expect(onChange).not.toHaveBeenCalled();
});

test("stops waiting after five seconds for a member whose copies cannot be read", async () => {
  const { clock, onChange, made } = patience();
  const [member, another] = [{}, {}];
  expect(made.overFor(member)).toBe(false);
  await clock.advance(1000);
  made.wait(key, "u");
  await clock.advance(4000);
  expect([made.overFor(member), made.overFor(another), onChange.mock.calls]).toEqual([true, false, [[key]]]);
  made.follow([another]);
  expect(made.overFor(member)).toBe(false);
  made.stop();
  await clock.advance(10_000);
  expect([made.overFor(member), made.overFor(another)]).toEqual([false, false]);
});
