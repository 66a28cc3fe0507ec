import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { explainedReasons, writtenReasons } from "../../../scripts/reference/reasons.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const explained = explainedReasons(readFileSync(join(root, "docs", "troubleshooting.md"), "utf8"));

test("explains every reason that Legation writes in a table of the page of symptoms", () => {
  const reasons = writtenReasons();
  expect(reasons.length).toBeGreaterThan(60);
  expect(reasons.filter((reason) => !explained.has(reason))).toEqual([]);
});

/** Reasons of Kubernetes that the page names beside Legation's. */
const OF_KUBERNETES: ReadonlySet<string> = new Set(["DeletionByPodGC"]);

test("explains no reason that Legation does not write", () => {
  const sources = globSync("src/**/*.ts", { cwd: root }).map((file) => readFileSync(join(root, file), "utf8"));
  const written = new Set(
    sources.flatMap((text) => [...text.matchAll(/"([A-Z][A-Za-z]+)"/g)].map(([, name = ""]) => name)),
  );
  expect(explained.size).toBeGreaterThan(60);
  expect([...explained.keys()].filter((name) => !written.has(name) && !OF_KUBERNETES.has(name))).toEqual([]);
});
