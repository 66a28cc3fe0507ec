import { describe, expect, test } from "vitest";
import type { ExportCondition, ServiceExport, Stored } from "../../../src/api/kubernetes.ts";
import { differences, type ExportReport, hostConditions } from "../../../src/copies/export-status.ts";

const EARLY = "2026-02-03T04:05:06Z";
const LATE = "2026-02-03T05:00:00Z";

function exported(...conditions: ExportCondition[]): Stored<ServiceExport> {
  const metadata = { name: "web", namespace: "team", uid: "u", resourceVersion: "7", creationTimestamp: EARLY };
  return { metadata, status: { conditions } };
}

function says(member: string, type: string, status: string, more: Partial<ExportCondition> = {}): ExportReport {
  const condition = { type, status, reason: "Because", message: `of ${member}`, lastTransitionTime: EARLY, ...more };
  return { member, conditions: [condition] };
}

describe("the status of a ServiceExport", () => {
  test.each<[string, ExportReport[], string[]]>([
    ["is empty without a report", [{ member: "west", conditions: [] }], []],
    ["is the only member's, with its name", [says("west", "Valid", "True")], ["Valid True Because west: of west"]],
    [
      "names members that agree",
      [says("west", "Valid", "True"), says("east", "Valid", "True")],
      ["Valid True Because east: of east; west: of west"],
    ],
    [
      "is not valid if one member reports so, and names it",
      [says("east", "Valid", "True"), says("west", "Valid", "False", { reason: "NoService" })],
      ["Valid False NoService west: of west"],
    ],
    [
      "is in conflict if one member reports so",
      [says("east", "Conflict", "False"), says("west", "Conflict", "True", { reason: "PortConflict" })],
      ["Conflict True PortConflict west: of west"],
    ],
    [
      "is not known when one member does not know, and none knows worse",
      [says("east", "Ready", "True"), says("west", "Ready", "Unknown")],
      ["Ready Unknown Because west: of west"],
    ],
    ["has only conditions of the API", [says("west", "legation.dev/Other", "True")], []],
    ["drops an unknown status", [says("west", "Valid", "maybe")], []],
    [
      "tells the reason when there is no message, and has a reason that the API takes",
      [says("west", "Valid", "False", { message: "", reason: "a reason!" })],
      ["Valid False Reported west: a reason!"],
    ],
    [
      "truncates a member's message",
      [says("west", "Valid", "False", { message: "x".repeat(40_000) })],
      [`Valid False Because west: ${"x".repeat(500)}`],
    ],
  ])("%s", (_, reports, expected) => {
    const shown = hostConditions(exported(), reports);
    expect(shown.map(({ type, status, reason, message }) => `${type} ${status} ${reason} ${message}`)).toEqual(
      expected,
    );
  });

  test("names ten members, and counts the rest", () => {
    const reports = Array.from({ length: 12 }, (_, index) => says(`m${index}`, "Valid", "False"));
    const [condition] = hostConditions(exported(), reports);
    expect(condition?.message).toMatch(/^m0: of m0; .*; m7: of m7; and 2 more$/);
  });

  test.each<[string, ExportReport[], ExportCondition[], string]>([
    [
      "the earliest of the members'",
      [says("a", "Valid", "False", { lastTransitionTime: LATE }), says("b", "Valid", "False")],
      [],
      EARLY,
    ],
    [
      "that of the host while the status is the same",
      [says("a", "Valid", "False")],
      [{ type: "Valid", status: "False", lastTransitionTime: LATE }],
      LATE,
    ],
    [
      "the member's when the status is another",
      [says("a", "Valid", "False")],
      [{ type: "Valid", status: "True", lastTransitionTime: LATE }],
      EARLY,
    ],
    [
      "that of the ServiceExport when the member's makes no sense",
      [says("a", "Valid", "False", { lastTransitionTime: "now" })],
      [],
      EARLY,
    ],
  ])("the transition time is %s", (_, reports, shown, expected) => {
    expect(hostConditions(exported(...shown), reports)[0]?.lastTransitionTime).toBe(expected);
  });

  const wanted = hostConditions(exported(), [says("west", "Valid", "True")]);
  const readyOf = (manager: string) => ({
    manager,
    operation: "Apply",
    fieldsV1: { "f:status": { "f:conditions": { 'k:{"type":"Ready"}': { ".": {}, "f:status": {} } } } },
  });
  test.each<[string, readonly ExportCondition[], object[], managers?: string[]]>([
    ["it shows them", wanted, []],
    [
      "it shows another status",
      wanted.map((one) => ({ ...one, status: "False" })),
      [{ type: "Valid", condition: wanted[0] }],
    ],
    [
      "it shows one of a member without a report",
      [...wanted, { type: "Ready", status: "True", message: "east: fine" }],
      [{ type: "Ready" }],
      ["mcs", "legation-ready"],
    ],
    [
      "it shows one more of the host's own implementation",
      [...wanted, { type: "Ready", status: "True", message: "east: fine" }],
      [],
      ["mcs", "legation-valid"],
    ],
    ["it shows nothing", [], [{ type: "Valid", condition: wanted[0] }]],
  ])("finds what to change on the host if %s", (_, shown, expected, managers = []) => {
    const source = exported(...shown);
    source.metadata.managedFields = managers.map(readyOf);
    expect(differences(source, wanted)).toEqual(expected);
  });
});
