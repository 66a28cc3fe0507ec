import { stripVTControlCharacters } from "node:util";
import { counted } from "../../api/wording.ts";
import { countStates, type Finding, type FindingGroup, type State } from "../explain/installation/finding.ts";
import { saidText } from "../explain/text.ts";
import type { Terminal } from "../shared/terminal.ts";
import { hanging, textWidth } from "../shared/text-width.ts";

const COLOURS = { OK: "green", INFO: "gray", WARN: "yellow", FAIL: "red", SKIP: "gray" } as const satisfies Record<
  State,
  string
>;

/** Formats findings for people: a heading for each group, one line for each finding, and a summary. */
export function findingsText(groups: readonly FindingGroup[], terminal: Terminal): string {
  const shown = groups.filter(({ findings }) => findings.length > 0);
  const parts = shown.map(({ name, findings }) =>
    [terminal.paint("bold", name), ...findings.flatMap((finding) => findingLines(finding, terminal))].join("\n"),
  );
  return [...parts, summary(groups)].join("\n\n");
}

/** Returns one line for a finding, or several that a narrow terminal shows beneath each other, the remedy in a line of its own. */
function findingLines(finding: Finding, terminal: Terminal): string[] {
  const { state, what, remedy } = finding;
  const lead = `  ${terminal.paint(COLOURS[state], state.padEnd(4))}  `;
  const how = `${oneLine(what)}${saidText(finding)}`;
  if (remedy === undefined) return hanging(lead, how, terminal.width);
  const fix = `Fix: ${oneLine(remedy)}`;
  const line = `${lead}${how}. ${fix}`;
  if (textWidth(line) <= terminal.width) return [line];
  return [...hanging(lead, `${how}.`, terminal.width), ...hanging(" ".repeat(textWidth(lead)), fix, terminal.width)];
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
