import { fitted, hanging } from "./text-width.ts";

const ITEM = /^( {2}\S.*?) {2,}(\S.*)$/;
// The names of most variables, which are not to be broken.
const LEAST_MEANING = 38;
const BELOW_INDENT = " ".repeat(4);

/** Breaks the lines of a help text: meanings beside their flags, or beneath them in a narrow terminal. */
export function fittedHelp(text: string, width: number): string {
  const lines = text.split("\n").flatMap((line) => itemLines(line, width) ?? fitted(line, width));
  return lines.join("\n");
}

/** Returns the lines of a flag or a command. Undefined if the line is none. */
function itemLines(line: string, width: number): string[] | undefined {
  const [, term = "", meaning] = ITEM.exec(line) ?? [];
  if (meaning === undefined) return undefined;
  const lead = line.slice(0, -meaning.length);
  if (width - lead.length >= LEAST_MEANING) return hanging(lead, meaning, width);
  return [...hanging("  ", term.trim(), width), ...hanging(BELOW_INDENT, meaning, width)];
}
