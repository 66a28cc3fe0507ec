import { expect, test } from "vitest";
import type { WaitingWorkload } from "../../../../../src/cli/explain/queue-waiting.ts";
import type { QueueStatus } from "../../../../../src/cli/explain/queues.ts";
import {
  queuesOf,
  quotaRows,
  waitingLink,
  waitingQueues,
  whyQueued,
} from "../../../../../src/cli/ui/page/queue-rows.ts";

const WAITS: WaitingWorkload = {
  ...{ namespace: "team", kind: "Job", name: "sweep", workload: "job-sweep-12345", since: "2026-01-01T00:00:00Z" },
  why: ["west: cpu: 4 requested, 2 left; east: cordoned"],
};

function queue(name: string, parts: Partial<QueueStatus> = {}): QueueStatus {
  const quotas = [
    { resource: "cpu", used: 1.5, nominal: 4 },
    { resource: "memory", used: 2 ** 30, nominal: 2 ** 32 },
  ];
  const flavors = [{ name: "west", members: ["west"], quotas }];
  return { name, flavors, followsMembers: true, admitted: 1, pending: 0, waiting: [], ...parts };
}

test("each quota of a queue is a row, with the members of its flavor", () => {
  const shown = quotaRows(queue("teams")).map(({ flavor, members, resource, used, quota }) => {
    return [flavor, members.join(), resource, used, quota];
  });
  expect(shown).toEqual([
    ["west", "west", "cpu", "1.5", "4"],
    ["west", "west", "memory", "1Gi", "4Gi"],
  ]);
});

test("queues with trouble are those that admit nothing, and those in which something waits, the longest first", () => {
  const rejected = queue("rejected", { waiting: [WAITS] });
  const queues = [queue("idle"), rejected, queue("few", { pending: 1 }), queue("many", { pending: 9 })];
  expect(waitingQueues([...queues, queue("stopped", { stopped: "is stopped" })]).map(({ name }) => name)).toEqual([
    "many",
    "few",
    "rejected",
    "stopped",
  ]);
});

test("a queue's reason is that it is stopped, then what would free its first workload, then what Kueue says", () => {
  const waitsFor = "waits for 4 cpu of flavor west";
  expect(whyQueued(queue("one", { stopped: "is stopped", waiting: [WAITS] }))).toBe("is stopped");
  expect(whyQueued(queue("one", { waiting: [{ ...WAITS, waitsFor }] }))).toBe(waitsFor);
  expect(whyQueued(queue("one", { waiting: [WAITS] }))).toBe("east: cordoned, and 1 more");
  expect(whyQueued(queue("one"))).toBeUndefined();
});

test("a member's queues are those of which a flavor selects it", () => {
  const other = queue("other", { flavors: [{ name: "east", members: ["east"], quotas: [] }] });
  expect(queuesOf("west", [queue("teams"), other])).toEqual(["teams"]);
});

test("what waits leads to its pod or workload, and several pods as one lead nowhere", () => {
  expect(waitingLink(WAITS)).toBe("#/workloads/Job/team/sweep");
  expect(waitingLink({ ...WAITS, kind: "Pod" })).toBe("#/pods/team/sweep");
  expect(waitingLink({ ...WAITS, kind: "Workload" })).toBeUndefined();
});
