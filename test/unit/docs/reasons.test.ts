import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..", "..", "..");
const troubleshooting = readFileSync(join(root, "docs", "troubleshooting.md"), "utf8");

/** Words on lines about reasons that are no reason of a condition, an event or a refusal of Legation. */
const OTHERS: ReadonlySet<string> = new Set([
  // Codes of KubeError, and kinds.
  ...["Aborted", "Gone", "Binding", "Status"],
  // Reasons of the write guard, which no object shows.
  ...["NoEffect", "Refused", "Undone"],
  // Types and statuses of conditions, and types of events.
  ...["ContainersReady", "Failure", "True", "Unreachable", "Normal", "Warning"],
  // An outcome of a decision, which logs and metrics show.
  "Failing",
  // The kubelet's own.
  "TerminationByKubelet",
]);

const NAME = /"([A-Z][A-Za-z]+)"/g;

/** Lines of the sources with names of reasons. */
const REASON_LINE = /reason|tellOnce|disruptedBy|notMember|\b(?:JOINED_TWICE|NOT_OVERFLOWED|NOT_READY) =/i;

/** Returns the names on the lines of the sources that are about a reason. */
function writtenReasons(): string[] {
  const files = globSync("src/{api,clusters,controllers,copies,kubelet,placement,pods}/**/*.ts", { cwd: root });
  const lines = files
    .flatMap((file) => readFileSync(join(root, file), "utf8").split("\n"))
    .filter((line) => REASON_LINE.test(line) && !/^\s*(?:\/\/|\/?\*)/.test(line));
  const names = lines.flatMap((line) => [...line.matchAll(NAME)].map(([, name = ""]) => name));
  return [...new Set(names)].filter((name) => !OTHERS.has(name)).sort();
}

test("lists every reason that Legation writes in the page of symptoms", () => {
  const missing = writtenReasons().filter((reason) => !troubleshooting.includes(`\`${reason}\``));
  expect(missing).toEqual([]);
});

/** Reasons of Kubernetes that the page names beside Legation's. */
const OF_KUBERNETES: ReadonlySet<string> = new Set(["DeletionByPodGC"]);

test("lists no reason that Legation does not write", () => {
  const [, chapter = ""] = /^## Reasons and events$([\s\S]*?)^## /m.exec(troubleshooting) ?? [];
  const rows = [...chapter.matchAll(/^\| ((?:`[A-Z][A-Za-z]+`(?:, )?)+)/gm)].map(([, names = ""]) => names);
  const listed = rows.flatMap((names) => [...names.matchAll(/`([A-Za-z]+)`/g)].map(([, name = ""]) => name));
  expect(listed.length).toBeGreaterThan(30);
  const sources = globSync("src/**/*.ts", { cwd: root }).map((file) => readFileSync(join(root, file), "utf8"));
  const written = new Set(sources.flatMap((text) => [...text.matchAll(NAME)].map(([, name = ""]) => name)));
  expect(listed.filter((name) => !written.has(name) && !OF_KUBERNETES.has(name))).toEqual([]);
});
