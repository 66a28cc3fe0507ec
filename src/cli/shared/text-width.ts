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

/**
 * Breaks a text into lines of at most some columns, between words where it can. Further lines keep its indentation, and each line
 * has its colours.
 */
export function wrapped(text: string, most: number): string[] {
  if (textWidth(text) <= most) return [text];
  const indent = /^ */.exec(stripVTControlCharacters(text))?.[0] ?? "";
  const lines = wrapAnsi(text, Math.max(1, most - indent.length), { hard: true }).split("\n");
  return lines.map((line) => indent + line);
}
