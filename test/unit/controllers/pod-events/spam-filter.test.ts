import { expect, test } from "vitest";
import { SpamFilter } from "../../../../src/controllers/pod-events/spam-filter.ts";
import { kubeletEvent } from "../../../support/builders/event.ts";

const minute = 60_000;

function accepted(filter: SpamFilter, count: number, now: number, event = kubeletEvent(), member = "west"): number {
  return Array.from({ length: count }, () => filter.accepts(member, event, now)).filter((accepts) => accepts).length;
}

/** Returns an event about its own proxy. */
function about(number: number): ReturnType<typeof kubeletEvent> {
  return kubeletEvent({ involvedObject: { kind: "Pod", namespace: "team", name: "web", uid: `proxy-${number}` } });
}

function acceptedOfEach(filter: SpamFilter, count: number, now: number, member: string): number {
  const events = Array.from({ length: count }, (_, number) => about(number));
  return events.filter((event) => filter.accepts(member, event, now)).length;
}

test("lets a member send 50 events of a pod at once, and then two in five minutes", () => {
  const filter = new SpamFilter();
  expect(accepted(filter, 100, 0)).toBe(50);
  expect(accepted(filter, 10, 2 * minute)).toBe(0);
  expect(accepted(filter, 10, 5 * minute)).toBe(2);
  expect(accepted(filter, 10, 16 * minute)).toBe(4);
});

test("allows 24 more after an hour of silence, and no more than 50 after a day", () => {
  const filter = new SpamFilter();
  accepted(filter, 50, 0);
  expect(accepted(filter, 100, 60 * minute)).toBe(24);
  expect(accepted(filter, 100, 24 * 60 * minute)).toBe(50);
});

test("limits pods, types and members separately", () => {
  const filter = new SpamFilter();
  accepted(filter, 100, 0);
  expect(accepted(filter, 100, 0, about(2))).toBe(50);
  expect(accepted(filter, 100, 0, kubeletEvent({ type: "Warning" }))).toBe(50);
  expect(accepted(filter, 100, 0, kubeletEvent(), "east")).toBe(50);
});

test("limits a kubelet, a scheduler and a network of one pod as each of them is in its cluster", () => {
  const filter = new SpamFilter();
  expect(accepted(filter, 25, 0)).toBe(25);
  expect(accepted(filter, 1, 0, kubeletEvent({ source: { component: "default-scheduler" } }))).toBe(1);
  expect(accepted(filter, 24, 0, kubeletEvent({ source: { component: "multus" } }))).toBe(24);
});

test("does not raise the member's limit by fields of an event", () => {
  const filter = new SpamFilter();
  const forged = Array.from({ length: 500 }, (_, number) =>
    kubeletEvent({
      uid: `00000000-0000-0000-0000-${String(number).padStart(12, "0")}`,
      source: { component: `component-${number}`, host: `host-${number}` },
      reportingComponent: `component-${number}`,
      type: `Type${number}`,
    }),
  );
  expect(forged.filter((event) => filter.accepts("west", event, 0))).toHaveLength(50);
});

test("lets a member send 10,000 events of many pods at once, and then 200 a second", () => {
  const filter = new SpamFilter();
  expect(acceptedOfEach(filter, 12_000, 0, "west")).toBe(10_000);
  expect(acceptedOfEach(filter, 1_000, 1_000, "west")).toBe(200);
  expect(acceptedOfEach(filter, 1_000, 1_000, "east")).toBe(1_000);
});

test("covers a hundred new pods a second for half a minute", () => {
  const filter = new SpamFilter();
  let told = 0;
  for (let second = 0; second < 30; second += 1) {
    for (let pod = 0; pod < 100; pod += 1) told += accepted(filter, 4, second * 1_000, about(second * 100 + pod));
  }
  expect(told).toBe(30 * 100 * 4);
});

test("remembers 50,000 pods at most, and forgets the longest silent ones", () => {
  const filter = new SpamFilter();
  accepted(filter, 100, 0);
  for (let number = 0; number < 49_999; number += 1) filter.accepts("east", about(number), 0);
  expect(accepted(filter, 1, 0)).toBe(0);
  for (let number = 0; number < 50_000; number += 1) filter.accepts("east", about(number), 0);
  expect(accepted(filter, 1, 0)).toBe(1);
});

test("forgets a pod whose limit is full again, at the next event of any", () => {
  const filter = new SpamFilter();
  acceptedOfEach(filter, 100, 0, "west");
  expect(filter.size).toBe(100);
  acceptedOfEach(filter, 1, 3 * minute, "east");
  expect(filter.size).toBe(1);
});
