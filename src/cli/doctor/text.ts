import { stripVTControlCharacters } from "node:util";
import { counted } from "../../api/wording.ts";
import { countStates, type Finding, type FindingGroup, type State } from "../explain/installation/finding.ts";
import { saidText } from "../explain/text.ts";
import type { Terminal } from "../shared/terminal.ts";

const COLOURS = { OK: "green", INFO: "gray", WARN: "yellow", FAIL: "red", SKIP: "gray" } as const satisfies Record<
  State,
  string
>;

/** Formats findings for people: a heading for each group, one line for each finding, and a summary. */
export function findingsText(groups: readonly FindingGroup[], terminal: Terminal): string {
  const shown = groups.filter(({ findings }) => findings.length > 0);
  const parts = shown.map(({ name, findings }) =>
    [terminal.paint("bold", name), ...findings.map((finding) => line(finding, terminal))].join("\n"),
  );
  return [...parts, summary(groups)].join("\n\n");
}

function line(finding: Finding, terminal: Terminal): string {
  const { state, what, remedy } = finding;
  const fix = remedy === undefined ? "" : `. Fix: ${oneLine(remedy)}`;
  return `  ${terminal.paint(COLOURS[state], state.padEnd(4))}  ${oneLine(what)}${saidText(finding)}${fix}`;
}

/** Messages of API servers may hold line breaks, and members' may hold control characters. */
function oneLine(text: string): string {
  return stripVTControlCharacters(text).replace(/\s+/g, " ").trim();
}

function summary(groups: readonly FindingGroup[]): string {
  const { OK, INFO, WARN, FAIL, SKIP } = countStates(groups);
  const parts = [
    `${OK} OK`,
    ...(INFO === 0 ? [] : [counted(INFO, "note")]),
    ...(WARN === 0 ? [] : [counted(WARN, "warning")]),
    ...(FAIL === 0 ? [] : [counted(FAIL, "failure")]),
    ...(SKIP === 0 ? [] : [`${SKIP} not checked`]),
  ];
  return parts.join(", ");
}
