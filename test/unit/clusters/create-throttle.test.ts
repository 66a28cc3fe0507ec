import { describe, expect, test } from "vitest";
import { CreateThrottle } from "../../../src/clusters/create-throttle.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const fields = { cluster: "west", verb: "create", resource: "pods", namespace: "team", objectName: "web" } as const;
const lost = kubeError("AnswerLost", "timed out", fields);
const refused = kubeError("Forbidden", "quota", { ...fields, status: 403 });

/** A member whose answers a test gives one by one; `sent` has the creates that have reached it. */
function start() {
  const clock = new FakeClock();
  const throttle = new CreateThrottle("west", clock);
  const sent: { readonly name: string; readonly answer: PromiseWithResolvers<void> }[] = [];
  const failed: string[] = [];
  const create = (name: string, namespace = "team", signal?: AbortSignal, isWanted?: () => boolean): void => {
    const send = (): Promise<void> => {
      const answer = Promise.withResolvers<void>();
      sent.push({ name, answer });
      return answer.promise;
    };
    throttle.of({ namespace, name, signal, isWanted }, send).catch((error: unknown) => {
      failed.push(error instanceof KubeError ? `${name}: ${error.code}` : String(error));
    });
  };
  const names = (): string[] => sent.map(({ name }) => name);
  const settle = (): Promise<void> => clock.advance(0);
  return { clock, throttle, sent, failed, create, names, settle };
}

/** The number of creates in flight to a near member. */
const FIRST = ["a", "b", "c", "d", "e"];

describe("creates in a member", () => {
  test("that does not answer stop at five, and the others reject with NotSent within two seconds", async () => {
    const { clock, create, names, failed } = start();
    for (const name of [...FIRST, "f", "g"]) create(name);
    await clock.advance(1_499);
    expect([names(), failed]).toEqual([FIRST, []]);
    await clock.advance(1);
    expect(failed).toEqual(["f: NotSent", "g: NotSent"]);
    create("h");
    await clock.advance(0);
    expect([names(), failed.at(-1)]).toEqual([FIRST, "h: NotSent"]);
  });

  test.each([
    ["a near member has five in flight", 5, [5, 5, 5, 5]],
    ["a distant member has one more in flight for each 50 ms", 200, [5, 9, 9, 9]],
  ])("%s", async (_, latencyMs, expected) => {
    const { sent, create, settle, clock } = start();
    for (let number = 0; number < expected.reduce((sum, count) => sum + count); number += 1) create(`pod-${number}`);
    await settle();
    const rounds = [sent.length];
    for (let answered = 0; rounds.length < expected.length; ) {
      const due = sent.slice(answered);
      answered = sent.length;
      await clock.advance(latencyMs);
      for (const { answer } of due) answer.resolve();
      await settle();
      rounds.push(sent.length - answered);
    }
    expect(rounds).toEqual(expected);
    expect(clock.pending).toBe(0);
  });

  test("are not sent when they are not wanted any more by their turn, which goes to the next", async () => {
    const { sent, create, names, failed, settle } = start();
    let wanted = true;
    for (const name of [...FIRST, "f", "g"]) create(name, "team", undefined, () => wanted);
    create("h");
    await settle();
    wanted = false;
    sent[0]?.answer.resolve();
    await settle();
    expect([names(), failed]).toEqual([
      [...FIRST, "h"],
      ["f: NotSent", "g: NotSent"],
    ]);
  });

  test("leave few in flight when the member stops answering in the middle of a burst", async () => {
    const { sent, create, settle, clock, failed } = start();
    for (let number = 0; number < 100; number += 1) create(`pod-${number}`);
    await settle();
    for (let answered = 0; answered < 40; answered += 1) {
      await clock.advance(10);
      sent[answered]?.answer.resolve();
      await settle();
    }
    await clock.advance(5_000);
    expect([sent.length, failed.length]).toEqual([45, 55]);
  });

  test.each([
    { what: "a refusal", error: refused, goesOn: true },
    { what: "an answer that never comes", error: lost, goesOn: false },
  ])("count $what as an answer: $goesOn", async ({ error, goesOn }) => {
    const { sent, create, names, settle } = start();
    for (const name of [...FIRST, "f"]) create(name);
    await settle();
    sent[0]?.answer.reject(error);
    await settle();
    expect(names().includes("f")).toBe(goesOn);
  });

  test("continue after a response to any other request", async () => {
    const { clock, throttle, create, names } = start();
    for (const name of [...FIRST, "f"]) create(name);
    await clock.advance(1_400);
    throttle.answered();
    await clock.advance(0);
    expect(names()).toEqual([...FIRST, "f"]);
    for (const name of ["g", "h", "i", "j", "k"]) create(name);
    await clock.advance(1_500);
    create("l");
    throttle.answered();
    create("m");
    await clock.advance(0);
    expect(names()).toEqual([...FIRST, "f", "g", "h", "i", "j", "m"]);
  });

  test("take turns between namespaces", async () => {
    const { clock, throttle, create, names, settle } = start();
    for (const name of [...FIRST, "f", "g"]) create(name, "hangs");
    create("x", "works");
    create("y", "works");
    await clock.advance(500);
    throttle.answered();
    await settle();
    expect(names().slice(5)).toEqual(["f", "x", "g", "y"]);
  });

  test("are never sent after their caller aborted", async () => {
    const { clock, throttle, create, names, failed } = start();
    const caller = new AbortController();
    for (const name of FIRST) create(name);
    create("f", "team", caller.signal);
    create("g");
    caller.abort();
    await clock.advance(500);
    throttle.answered();
    await clock.advance(0);
    expect([names(), failed]).toEqual([[...FIRST, "g"], ["f: Aborted"]]);
  });
});
