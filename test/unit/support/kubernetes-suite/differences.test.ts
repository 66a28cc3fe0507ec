import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { compare, parseListed } from "../../../support/kubernetes-suite/differences.ts";
import type { SpecResult } from "../../../support/kubernetes-suite/results.ts";

type Outcomes = Readonly<Record<string, SpecResult["outcome"]>>;

function results(outcomes: Outcomes): ReadonlyMap<string, SpecResult> {
  return new Map(Object.entries(outcomes).map(([spec, outcome]) => [spec, { spec, outcome, seconds: 1 }]));
}

const listed = [{ spec: "Pods names a node", reason: "the author has chosen" }];

describe("the differences of the suite", () => {
  test.each<[string, Outcomes, Outcomes, { unlisted?: string[]; mended?: string[]; listed?: string[] }]>([
    ["has no difference where both sides pass", { a: "passed" }, { a: "passed" }, {}],
    ["ignores a spec that fails on both sides", { a: "failed" }, { a: "failed" }, {}],
    ["ignores a spec that fails on the plain cluster only", { a: "failed" }, { a: "passed" }, {}],
    ["ignores a spec without a result on the plain cluster", {}, { a: "failed" }, {}],
    ["ignores a spec without a result delegated", { a: "passed" }, {}, {}],
    ["finds a spec that fails delegated only", { a: "passed" }, { a: "failed" }, { unlisted: ["a"] }],
    ["finds a spec that skips itself delegated only", { a: "passed" }, { a: "skipped" }, { unlisted: ["a"] }],
    [
      "expects a listed spec to fail",
      { "Pods names a node": "passed" },
      { "Pods names a node": "failed" },
      { listed: ["Pods names a node"] },
    ],
    [
      "finds a listed spec that passes",
      { "Pods names a node": "passed" },
      { "Pods names a node": "passed" },
      { mended: ["Pods names a node"] },
    ],
  ])("are compared with the list: %s", (_behaviour, plain, delegated, expected) => {
    const verdict = compare(results(plain), results(delegated), listed);
    const names = (some: readonly { readonly spec: string }[]): string[] => some.map(({ spec }) => spec);
    expect({
      unlisted: names(verdict.unlisted),
      mended: names(verdict.mended),
      listed: names(verdict.listed),
    }).toEqual({ unlisted: [], mended: [], listed: [], ...expected });
  });

  test("are counted among the specs that ended on both sides", () => {
    const { ran, passed } = compare(
      results({ a: "passed", b: "passed", c: "failed", only: "passed" }),
      results({ a: "passed", b: "failed", c: "failed" }),
      [],
    );
    expect({ ran, passed }).toEqual({ ran: 3, passed: { plain: 2, compared: 1 } });
  });
});

describe("the list of differences", () => {
  const page = (...lines: string[]): string => ["# Page", "", "### Differences of the suite", ...lines].join("\n");

  test("is read until the next heading", () => {
    const lines = ["Some words.", "", "- `[sig-node] Pods run`: a reason", "", "## More", "- `other`: thing"];
    expect(parseListed(page(...lines), "delegated")).toEqual([{ spec: "[sig-node] Pods run", reason: "a reason" }]);
  });

  test.each(["- `[sig-node] Pods run`", "- `[sig-node] Pods run`:", "- [sig-node] Pods run: a reason"])(
    "is refused when an item is not a spec and its reason: %s",
    (line) => {
      expect(() => parseListed(page(line), "delegated")).toThrow(line);
    },
  );

  test("is refused on a page without its heading", () => {
    expect(() => parseListed("# Page\n", "delegated")).toThrow("Differences of the suite");
    expect(() => parseListed(page(), "whole")).toThrow("Differences of whole Jobs");
  });

  test.each(["delegated", "whole", "devices", "door", "kueue"] as const)(
    "can be read from the documents: %s",
    (side) => {
      const text = readFileSync(join(import.meta.dirname, "../../../../docs/conformance.md"), "utf8");
      const specs = parseListed(text, side).map(({ spec }) => spec);
      expect(new Set(specs).size).toBe(specs.length);
    },
  );
});
