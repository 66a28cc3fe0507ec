import { expect, test } from "vitest";
import { objectKey } from "../../../../src/api/kubernetes.ts";
import { EventQueue, type Pending } from "../../../../src/controllers/pod-events/queue.ts";
import { kubeletEvent } from "../../../support/builders/event.ts";

const KIBIBYTE = 1_024;
const any = (): boolean => true;

/** Puts an event of a member. Returns the number of dropped events. */
function put(queue: EventQueue, member: string, name: string, message = "Container started"): number {
  const event = kubeletEvent({ name, message });
  return queue.put(objectKey({ namespace: "team", name }), { member, event, isNew: true, attempts: 0 });
}

function drain(queue: EventQueue): (string | undefined)[] {
  const taken = [];
  for (let next = queue.next(any); next !== undefined; next = queue.next(any)) {
    taken.push(next.pending.event.metadata.name);
  }
  return taken;
}

test("serves members in turn, each with its events in order", () => {
  const queue = new EventQueue();
  for (const name of ["w1", "w2", "w3", "w4"]) put(queue, "west", name);
  for (const name of ["e1", "e2"]) put(queue, "east", name);
  expect(queue.size).toBe(6);
  expect(drain(queue)).toEqual(["w1", "e1", "w2", "e2", "w3", "w4"]);
  expect(queue.size).toBe(0);
});

test("skips an event that may not be written yet, and keeps it", () => {
  const queue = new EventQueue();
  for (const name of ["w1", "w2"]) put(queue, "west", name);
  const mayBeWritten = ({ event }: Pending): boolean => event.metadata.name !== "w1";
  expect(queue.next(mayBeWritten)?.pending.event.metadata.name).toBe("w2");
  expect(queue.next(mayBeWritten)).toBeUndefined();
  expect(drain(queue)).toEqual(["w1"]);
});

test("replaces a waiting event in its place", () => {
  const queue = new EventQueue();
  for (const name of ["w1", "w2"]) put(queue, "west", name);
  put(queue, "west", "w1", "again");
  expect(queue.get("west", objectKey({ namespace: "team", name: "w1" }))?.event.message).toBe("again");
  expect(queue.get("east", objectKey({ namespace: "team", name: "w1" }))).toBeUndefined();
  expect(drain(queue)).toEqual(["w1", "w2"]);
});

test("drops the oldest events of the member with the most waiting bytes, and no others", () => {
  const queue = new EventQueue();
  for (let number = 0; number < 1_000; number += 1) put(queue, "east", `e${number}`);
  let lost = 0;
  for (let number = 0; number < 1_000; number += 1) lost += put(queue, "west", `w${number}`, "x".repeat(30 * KIBIBYTE));
  expect(lost).toBeGreaterThan(600);
  expect(put(queue, "east", "e1000", "x".repeat(30 * KIBIBYTE))).toBe(1);
  const names = drain(queue);
  expect(names.filter((name) => name?.startsWith("e"))).toHaveLength(1_001);
  expect(names).toContain("w999");
  expect(names).not.toContain("w0");
});

test("has room again after events were taken or dropped", () => {
  const queue = new EventQueue();
  for (let round = 0; round < 3; round += 1) {
    let lost = 0;
    for (let number = 0; number < 300; number += 1) lost += put(queue, "west", `w${number}`, "x".repeat(30 * KIBIBYTE));
    expect(lost).toBe(0);
    if (round === 0) queue.clear();
    else drain(queue);
  }
});

test("counts an event that is replaced repeatedly once", () => {
  const queue = new EventQueue();
  put(queue, "west", "w0");
  let lost = 0;
  for (let round = 0; round < 1_000; round += 1) lost += put(queue, "west", "w1", "x".repeat(30 * KIBIBYTE));
  expect([lost, drain(queue)]).toEqual([0, ["w0", "w1"]]);
});
