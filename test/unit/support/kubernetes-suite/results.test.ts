import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseNames, parseReport, Results } from "../../../support/kubernetes-suite/results.ts";

function spec(state: string, message?: string): object {
  return {
    ContainerHierarchyTexts: ["[sig-node] Pods"],
    LeafNodeType: "It",
    LeafNodeText: "run",
    State: state,
    RunTime: 12_400_000_000,
    ...(message === undefined ? {} : { Failure: { Message: message } }),
  };
}

function report(...specs: readonly object[]): string {
  const beforeSuite = { ContainerHierarchyTexts: null, LeafNodeType: "BeforeSuite", State: "passed", RunTime: 1 };
  return JSON.stringify([{ SpecReports: [beforeSuite, ...specs] }]);
}

test.each([
  ["passed", undefined, { outcome: "passed" }],
  ["failed", "no such pod\nexpected true", { outcome: "failed", message: "no such pod" }],
  ["panicked", "nil", { outcome: "failed", message: "nil" }],
  ["timedout", "too long", { outcome: "failed", message: "too long" }],
  ["skipped", "needs a cloud", { outcome: "skipped", message: "needs a cloud" }],
])("returns a result for a spec that has %s", (state, message, expected) => {
  expect(parseReport(report(spec(state, message)))).toEqual([
    { spec: "[sig-node] Pods run", seconds: 12, ...expected },
  ]);
});

test.each([
  ["is left out by a filter", spec("skipped")],
  ["is pending", spec("pending")],
  ["was interrupted", spec("interrupted", "by the user")],
  ["was aborted", spec("aborted", "with the suite")],
])("returns no result for a spec that %s", (_why, ended) => {
  expect(parseReport(report(ended))).toEqual([]);
});

test("reads the name of every spec from a dry run", () => {
  expect(parseNames(report(spec("passed"), { ...spec("passed"), LeafNodeText: "end" }))).toEqual([
    "[sig-node] Pods run",
    "[sig-node] Pods end",
  ]);
});

test("keeps the newest result of each spec and side", () => {
  const directory = mkdtempSync(join(tmpdir(), "results-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const first = { spec: "a", outcome: "failed", seconds: 1, message: "not yet" } as const;
  const second = { spec: "a", outcome: "passed", seconds: 2 } as const;
  new Results(directory).add("plain", [first]);
  new Results(directory).add("plain", [second]);
  expect([...new Results(directory).of("plain").values()]).toEqual([second]);
  expect(new Results(directory).of("delegated").size).toBe(0);
});
