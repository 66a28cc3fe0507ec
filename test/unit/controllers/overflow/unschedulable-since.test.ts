import { expect, test } from "vitest";
import { UnschedulableSince } from "../../../../src/controllers/overflow/unschedulable-since.ts";
import { pod } from "../../../support/builders/pod.ts";

const unschedulable = { type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/3 nodes" };
const without = pod({ status: { phase: "Pending", conditions: [unschedulable] } });
const schedulable = pod({ status: { phase: "Pending" } });
const { uid } = without.metadata;

test("a pod counts from the moment it was first seen unschedulable, not from the last", () => {
  const since = new UnschedulableSince();
  since.note(without, 100);
  since.note(without, 200);
  expect(since.of(uid, 300)).toEqual({ unplacedAt: 100 });
});

test("a pod that was schedulable meanwhile counts anew, and when that was is kept", () => {
  const since = new UnschedulableSince();
  since.note(without, 100);
  since.note(schedulable, 200);
  expect(since.of(uid, 250)).toEqual({ otherwiseAt: 200, unplacedAt: 250 });
  since.note(without, 300);
  expect(since.of(uid, 400)).toEqual({ otherwiseAt: 200, unplacedAt: 300 });
});

test("a pod that was never seen, or is forgotten, counts from now", () => {
  const since = new UnschedulableSince();
  since.note(without, 100);
  since.forget(uid);
  expect(since.of(uid, 400)).toEqual({ unplacedAt: 400 });
});

test("times that a clock which was set back leaves in the future count as now", () => {
  const since = new UnschedulableSince();
  since.note(schedulable, 1_000);
  since.note(without, 2_000);
  expect(since.of(uid, 500)).toEqual({ otherwiseAt: 500, unplacedAt: 500 });
});
