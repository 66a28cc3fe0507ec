import { expect, test } from "vitest";
import { SpamFilter } from "../../../../src/controllers/pod-events/spam-filter.ts";
import { kubeletEvent } from "../../../support/builders/event.ts";

const minute = 60_000;

function accepted(filter: SpamFilter, count: number, now: number, event = kubeletEvent()): number {
  return Array.from({ length: count }, () => filter.accepts(event, now)).filter((accepts) => accepts).length;
}

test("a source may tell 25 events of a pod at once, and then one in five minutes", () => {
  const filter = new SpamFilter();
  expect(accepted(filter, 100, 0)).toBe(25);
  expect(accepted(filter, 10, 4 * minute)).toBe(0);
  expect(accepted(filter, 10, 5 * minute)).toBe(1);
  expect(accepted(filter, 10, 16 * minute)).toBe(2);
});

test("an hour of silence gives twelve again, and a day no more than 25", () => {
  const filter = new SpamFilter();
  accepted(filter, 25, 0);
  expect(accepted(filter, 100, 60 * minute)).toBe(12);
  expect(accepted(filter, 100, 24 * 60 * minute)).toBe(25);
});

test("pods, sources and types do not limit each other", () => {
  const filter = new SpamFilter();
  accepted(filter, 100, 0);
  const event = kubeletEvent();
  const others = [
    { ...event, involvedObject: { ...event.involvedObject, uid: "other" } },
    { ...event, source: { component: "default-scheduler" } },
    { ...event, source: { component: "kubelet", host: "node-2" } },
    { ...event, type: "Warning" },
  ];
  expect(others.map((other) => accepted(filter, 100, 0, other))).toEqual([25, 25, 25, 25]);
});
