import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { anchorsOf } from "../documents/links.ts";
import { code, heading, table } from "./markdown.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Words on lines about reasons that are no reason of a condition, an event or a refusal of Legation. */
const OTHERS: ReadonlySet<string> = new Set([
  // Codes of KubeError, and kinds.
  ...["Aborted", "Gone", "Binding", "Status"],
  // Reasons of the write guard, which no object shows.
  ...["NoEffect", "Refused", "Undone"],
  // Types and statuses of conditions, and types of events.
  ...["ContainersReady", "DisruptionTarget", "Failure", "False", "Ready", "True", "Unknown", "Unreachable"],
  ...["Normal", "Warning"],
  // An outcome of a decision, which logs and metrics show.
  "Failing",
  // The kubelet's and the Cluster Autoscaler's own.
  ...["TerminationByKubelet", "NotTriggerScaleUp"],
]);

const NAME = /"([A-Z][A-Za-z]+)"/g;

/** Lines of the sources with names of reasons. */
const REASON_LINE = /reason|tellOnce|disruptedBy|notMember|\b(?:JOINED_TWICE|NOT_OVERFLOWED|NOT_READY) =/i;

/** Returns the names on the lines of the sources that are about a reason, sorted. */
export function writtenReasons(): readonly string[] {
  const names = new Set<string>();
  for (const file of globSync("src/{api,clusters,controllers,copies,kubelet,placement,pods,scheduling,whole}/**/*.ts", {
    cwd: root,
  })) {
    for (const line of readFileSync(root + file, "utf8").split("\n")) {
      if (!REASON_LINE.test(line) || /^\s*(?:\/\/|\/?\*)/.test(line)) continue;
      for (const [, name = ""] of line.matchAll(NAME)) {
        if (!OTHERS.has(name)) names.add(name);
      }
    }
  }
  return [...names].sort();
}

interface Explanation {
  readonly section: string;
  readonly text: string;
}

/** Returns what the tables of the page of symptoms say of each reason. */
export function explainedReasons(troubleshooting: string): ReadonlyMap<string, readonly Explanation[]> {
  const [, chapter = ""] = /^## Reasons and events$([\s\S]*?)^## /m.exec(troubleshooting) ?? [];
  const found = new Map<string, Explanation[]>();
  for (const section of chapter.split(/^### /m).slice(1)) {
    const [title = ""] = section.split("\n", 1);
    let above: readonly string[] = [];
    for (const [, row = ""] of section.matchAll(/^\|(.*)\|$/gm)) {
      // An empty cell repeats the one above.
      const cells = row.split("|").map((cell, column) => cell.trim() || (above[column] ?? ""));
      above = cells;
      const at = cells.findIndex((cell) => /^(?:`[A-Z][A-Za-z]+`(?:, (?:…)?)?)+$/.test(cell));
      if (at === -1) continue;
      const text = cells.filter((cell, column) => column !== at && cell !== "").join("; ");
      for (const [, name = ""] of (cells[at] ?? "").matchAll(/`([A-Za-z]+)`/g)) {
        found.set(name, [...(found.get(name) ?? []), { section: title, text }]);
      }
    }
  }
  return found;
}

/** Returns the page of all reasons and events. */
export function reasonsPage(): string {
  const troubleshooting = readFileSync(`${root}docs/troubleshooting.md`, "utf8");
  const explained = explainedReasons(troubleshooting);
  const rows = writtenReasons().flatMap((name) =>
    (explained.get(name) ?? []).map(({ section, text }) => [
      code(name),
      `[${section.charAt(0).toLowerCase()}${section.slice(1)}](../troubleshooting.md#${anchorOf(section)})`,
      rebased(text),
    ]),
  );
  const intro =
    "This page lists every reason of a condition, event or refusal that Legation writes, by name.\n[troubleshooting.md](../troubleshooting.md) has them by symptom.";
  return [
    heading("Reasons and events", intro, "the sources and `docs/troubleshooting.md`"),
    `\n${table(["reason", "where", "meaning and what to do"], rows)}`,
  ].join("");
}

function anchorOf(section: string): string {
  const [anchor = ""] = anchorsOf(`### ${section}\n`);
  return anchor;
}

/** Makes links of the page of symptoms right one folder below it. */
function rebased(text: string): string {
  return text.replaceAll("](#", "](../troubleshooting.md#").replaceAll(/\]\((?=[a-z-]+\.md)/g, "](../");
}
