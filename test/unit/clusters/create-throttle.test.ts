import { describe, expect, test } from "vitest";
import { CreateThrottle } from "../../../src/clusters/create-throttle.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";

const fields = { cluster: "west", verb: "create", resource: "pods", namespace: "team", objectName: "web" } as const;
const lost = new KubeError("timed out", { ...fields, code: "AnswerLost" });
const refused = new KubeError("quota", { ...fields, code: "Forbidden", status: 403 });

/** A member whose answers a test gives one by one; `sent` has the creates that have reached it. */
function start() {
  const clock = new FakeClock();
  const throttle = new CreateThrottle("west", clock);
  const sent: { readonly name: string; readonly answer: PromiseWithResolvers<void> }[] = [];
  const failed: string[] = [];
  const create = (name: string, namespace = "team", signal?: AbortSignal): void => {
    const send = (): Promise<void> => {
      const answer = Promise.withResolvers<void>();
      sent.push({ name, answer });
      return answer.promise;
    };
    throttle.of({ namespace, name, signal }, send).catch((error: unknown) => {
      failed.push(error instanceof KubeError ? `${name}: ${error.code}` : String(error));
    });
  };
  const names = (): string[] => sent.map(({ name }) => name);
  const settle = (): Promise<void> => clock.advance(0);
  return { clock, throttle, sent, failed, create, names, settle };
}

describe("creates in a member", () => {
  test("that does not answer stop at two, and the others reject with NotSent within two seconds", async () => {
    const { clock, create, names, failed } = start();
    for (const name of ["a", "b", "c", "d"]) create(name);
    await clock.advance(1_499);
    expect([names(), failed]).toEqual([["a", "b"], []]);
    await clock.advance(1);
    expect(failed).toEqual(["c: NotSent", "d: NotSent"]);
    create("e");
    await clock.advance(0);
    expect([names(), failed.at(-1)]).toEqual([["a", "b"], "e: NotSent"]);
  });

  test("that answers double with each round of responses", async () => {
    const { sent, create, settle, clock } = start();
    for (let number = 0; number < 30; number += 1) create(`pod-${number}`);
    await settle();
    const rounds = [sent.length];
    for (let round = 0, answered = 0; round < 3; round += 1) {
      const due = sent.slice(answered);
      answered = sent.length;
      for (const { answer } of due) answer.resolve();
      await settle();
      rounds.push(sent.length - answered);
    }
    expect(rounds).toEqual([2, 4, 8, 16]);
    expect(clock.pending).toBe(0);
  });

  test.each([
    { what: "a refusal", error: refused, goesOn: true },
    { what: "an answer that never comes", error: lost, goesOn: false },
  ])("count $what as an answer: $goesOn", async ({ error, goesOn }) => {
    const { sent, create, names, settle } = start();
    for (const name of ["a", "b", "c"]) create(name);
    await settle();
    sent[0]?.answer.reject(error);
    await settle();
    expect(names().includes("c")).toBe(goesOn);
  });

  test("continue after a response to any other request", async () => {
    const { clock, throttle, create, names } = start();
    for (const name of ["a", "b", "c"]) create(name);
    await clock.advance(1_400);
    throttle.answered();
    await clock.advance(1_400);
    expect(names()).toEqual(["a", "b", "c"]);
    create("d");
    await clock.advance(10_000);
    throttle.answered();
    create("e");
    await clock.advance(0);
    expect(names()).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("take turns between namespaces", async () => {
    const { throttle, create, names, settle } = start();
    for (const name of ["a", "b", "c", "d", "e"]) create(name, "hangs");
    create("x", "works");
    create("y", "works");
    await settle();
    throttle.answered();
    await settle();
    expect(names().slice(2)).toEqual(["c", "x"]);
  });

  test("are never sent after their caller aborted", async () => {
    const { throttle, create, names, failed, settle } = start();
    const caller = new AbortController();
    for (const name of ["a", "b"]) create(name);
    create("c", "team", caller.signal);
    create("d");
    caller.abort();
    await settle();
    throttle.answered();
    await settle();
    expect([names(), failed]).toEqual([["a", "b", "d"], ["c: Aborted"]]);
  });
});
