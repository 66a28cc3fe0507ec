import { stripVTControlCharacters } from "node:util";
import stringWidth from "fast-string-width";
import { wrapAnsi } from "fast-wrap-ansi";

const ELLIPSIS = "…";
const CLOSING_COLOURS = /(?:\p{Control}\[\d+m)*$/u;

/** Returns the columns of a terminal that a text takes. Colours take none. */
export function textWidth(text: string): number {
  return stringWidth(text);
}

/** Shortens a text to some columns, with an ellipsis for the rest. Its colours stay. */
export function shortened(text: string, most: number): string {
  if (textWidth(text) <= most) return text;
  if (most < 1) return "";
  const [head = ""] = wrapAnsi(text, most - 1, { hard: true, wordWrap: false, trim: false }).split("\n");
  return head.replace(CLOSING_COLOURS, `${ELLIPSIS}$&`);
}

/** Fills a text with spaces up to some columns. */
export function padded(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

// Stands for a space at which no line is broken.
const NO_BREAK = "\u00a0";

/** Breaks a text into lines between words, and not within `commands` that fit on a line. Keeps indentation and colours. */
export function wrapped(text: string, most: number): string[] {
  if (textWidth(text) <= most) return [text];
  const indent = /^ */.exec(stripVTControlCharacters(text))?.[0] ?? "";
  const room = Math.max(1, most - indent.length);
  const joined = text.replace(/`[^`]*`/g, (command) =>
    textWidth(command) > room ? command : command.replaceAll(" ", NO_BREAK),
  );
  const lines = wrapAnsi(joined, room, { hard: true }).split("\n");
  return lines.map((line) => indent + line.replaceAll(NO_BREAK, " "));
}

/** Breaks a text that follows `lead`, e.g. a flag. Further lines begin beneath its first word. */
export function hanging(lead: string, text: string, most: number): string[] {
  const indent = textWidth(lead);
  const [first = "", ...rest] = wrapped(text, Math.max(1, most - indent));
  return [lead + first, ...rest.map((line) => " ".repeat(indent) + line)];
}

const COMMAND = /^ *(?:kubectl|legation) /;

/** Breaks those lines of a text that are longer than `most` columns. Commands can still be copied. */
export function fitted(text: string, most: number): string {
  const lines = text
    .split("\n")
    .flatMap((line) => (COMMAND.test(line) ? commandLines(line, most) : wrapped(line, most)));
  return lines.join("\n");
}

/** Breaks a command as a shell takes it: with a backslash, and nowhere in quotes. */
function commandLines(line: string, most: number): string[] {
  if (textWidth(line) <= most) return [line];
  const indent = /^ */.exec(line)?.[0] ?? "";
  const words = line.match(/(?:'[^']*'|"[^"]*"|\S)+/g) ?? [];
  const lines: string[] = [];
  let begun = indent;
  for (const word of words) {
    const isFirst = begun.trim() === "";
    if (!isFirst && textWidth(`${begun} ${word} \\`) > most) {
      lines.push(`${begun} \\`);
      begun = `${indent}    ${word}`;
    } else begun += isFirst ? word : ` ${word}`;
  }
  return [...lines, begun];
}
