import { expect, test } from "vitest";
import { EXPORTED_ANNOTATION } from "../../../../../src/api/keys.ts";
import type { ExportCondition, ServiceExport, Stored } from "../../../../../src/api/kubernetes.ts";
import {
  decideExport,
  decideReport,
  type ObservedCopy,
  type ObservedExport,
} from "../../../../../src/controllers/services/exports/decide.ts";
import { hostConditions } from "../../../../../src/copies/export-status.ts";

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
const ofLegation = exported(old);
ofLegation.metadata.managedFields = [
  { manager: "legation-valid", fieldsV1: { "f:status": { "f:conditions": { 'k:{"type":"Valid"}': {} } } } },
];

test.each<[string, Partial<ObservedExport>, string, number?]>([
  ["writes a first report at once", {}, "Reporting"],
  ["does not write conditions that are shown already", { exported: exported(...conditions) }, "InStep"],
  ["writes nothing without reports", { reports: [] }, "InStep"],
  ["delays a change until all members may have reported", { exported: exported(old) }, "Waiting", now + 10_000],
  ["writes a change after that", { exported: exported(old), since: now - 10_000 }, "Reporting"],
  [
    "removes a condition that no member reports any more",
    { exported: ofLegation, since: now - 10_000, reports: [] },
    "Reporting",
  ],
  ["writes a condition that changes constantly every five seconds", last(1_000, "6", {}), "Waiting", now + 4_000],
  ["holds a condition that the host does not store", last(6_000, "7"), "Waiting", now + 594_000],
  ["repeats a condition that the host did not store after a while", last(600_000, "7"), "Reporting"],
  ["repeats a condition that the host did not store when the export has changed there", last(6_000, "6"), "Reporting"],
])("%s", (_, parts, outcome, requeueAt) => {
  const decision = decideReport({ exported: exported(), reports, since: now, last: [], ...parts }, now);
  expect(decision).toMatchObject({ outcome, actions: outcome === "Reporting" ? [{}] : [] });
  expect(decision.requeueAt).toBe(requeueAt);
});

const serviceCopy = { metadata: { name: "web", namespace: "team", uid: "copy-uid", resourceVersion: "3" } };
const marked = { metadata: { ...serviceCopy.metadata, annotations: { [EXPORTED_ANNOTATION]: "true" } } };
const isExportedOnHost = { exported: { state: "present", object: serviceCopy } } as const;

test.each<[string, Partial<ObservedCopy>, string[]]>([
  ["is exported when the host exports it", isExportedOnHost, ["Exporting", "export"]],
  ["is exported again later", { ...isExportedOnHost, due: 1_001 }, ["InStep"]],
  ["is not exported when it is about to go", { ...isExportedOnHost, usable: false }, ["Unreachable"]],
  ["is no longer exported when the host does not", { copy: marked }, ["Exporting", "unexport"]],
  ["stays exported while the host is being read", { copy: marked, exported: { state: "unknown" } }, ["InStep"]],
  ["is left alone when the host does not export it", {}, ["InStep"]],
])("%s, as a Service's copy", (_, parts, expected) => {
  const ref = { member: "west", kind: "Service", namespace: "team", name: "web" };
  const observed: ObservedCopy = {
    ref,
    copy: serviceCopy,
    usable: true,
    exported: { state: "missing" },
    due: 0,
    ...parts,
  };
  const { actions, outcome } = decideExport(observed, 1_000);
  expect([outcome, ...actions.map(({ type }) => type)]).toEqual(expected);
});
