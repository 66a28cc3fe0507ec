import { expect, test } from "vitest";
import type { ExportCondition, ServiceExport, Stored } from "../../../../src/api/kubernetes.ts";
import { decideReport, type ObservedExport } from "../../../../src/controllers/services/decide-export-status.ts";
import { hostConditions } from "../../../../src/copies/export-status.ts";

const now = Date.parse("2026-02-03T04:05:06Z");
const valid = {
  type: "Valid",
  status: "True",
  reason: "Ok",
  message: "fine",
  lastTransitionTime: "2026-02-03T04:05:00Z",
};
const reports = [{ member: "west", conditions: [valid] }];

function exported(...conditions: readonly ExportCondition[]): Stored<ServiceExport> {
  return { metadata: { name: "web", namespace: "team", uid: "u", resourceVersion: "7" }, status: { conditions } };
}

const conditions = hostConditions(exported(), reports);
const [condition] = conditions;
if (condition === undefined) throw new Error("a report makes a condition");
const last = (msAgo: number, resourceVersion: string, more: object = { condition }): Partial<ObservedExport> => ({
  last: [{ type: "Valid", at: now - msAgo, resourceVersion, ...more }],
});
const old = { type: "Valid", status: "False", message: "west: no" };

test.each<[string, Partial<ObservedExport>, string, number?]>([
  ["a first report is written at once", {}, "Reporting"],
  ["what is shown already is not written", { exported: exported(...conditions) }, "InStep"],
  ["nothing is written of nothing", { reports: [] }, "InStep"],
  ["a change waits until all members may have been heard", { exported: exported(old) }, "Waiting", now + 10_000],
  ["a change is written then", { exported: exported(old), since: now - 10_000 }, "Reporting"],
  [
    "what no member says any more is taken back",
    { exported: exported(old), since: now - 10_000, reports: [] },
    "Reporting",
  ],
  ["one that changes all the time is written every five seconds", last(1_000, "6", {}), "Waiting", now + 4_000],
  ["what the host did not take is left for a while", last(6_000, "7"), "Waiting", now + 594_000],
  ["what the host did not take is tried again", last(600_000, "7"), "Reporting"],
  ["what the host did not take is tried again when it has changed there", last(6_000, "6"), "Reporting"],
])("%s", (_, parts, outcome, requeueAt) => {
  const decision = decideReport({ exported: exported(), reports, since: now, last: [], ...parts }, now);
  expect(decision).toMatchObject({ outcome, actions: outcome === "Reporting" ? [{}] : [] });
  expect(decision.requeueAt).toBe(requeueAt);
});
