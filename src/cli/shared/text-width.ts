import { stripVTControlCharacters } from "node:util";

let segmenter: Intl.Segmenter | undefined;
// Characters that terminals show in two columns: East Asian Wide and Fullwidth (UAX #11), and emoji.
const WIDE =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|[\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]/u;
const HALF_WIDTH = /^[\uff61-\uffdc]/u;
const INVISIBLE = /^[\p{Mark}\p{Format}\p{Control}]+$/u;
const ELLIPSIS = "…";
const PLAIN = /^[ -~]*$/;

/** Splits a text into what a reader sees as one character each. */
function graphemes(text: string): Intl.Segments {
  // A segmenter's tables take 2 MB, so a process that measures plain texts only does without.
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** Returns the columns of a terminal that a text takes. Colours take none. */
export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes(stripVTControlCharacters(text))) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0;
  return WIDE.test(grapheme) && !HALF_WIDTH.test(grapheme) ? 2 : 1;
}

/** Splits a cell into its text and the colours around it. Colours within it are dropped. */
function coloured(text: string): { readonly before: string; readonly plain: string; readonly after: string } {
  const plain = stripVTControlCharacters(text);
  const start = text.indexOf(plain);
  if (start === -1) return { before: "", plain, after: "" };
  return { before: text.slice(0, start), plain, after: text.slice(start + plain.length) };
}

/** Shortens a text to some columns, with an ellipsis for the rest. A colour around it stays. */
export function shortened(text: string, most: number): string {
  if (textWidth(text) <= most) return text;
  const { before, plain, after } = coloured(text);
  return before + (most < 1 ? "" : head(plain, most - 1) + ELLIPSIS) + after;
}

/**
 * Breaks a text into lines of at most some columns, between words where it can. Further lines keep its indentation, and each line
 * has the colour around it.
 */
export function wrapped(text: string, most: number): string[] {
  const { before, plain, after } = coloured(text);
  const indent = /^ */.exec(plain)?.[0] ?? "";
  const lines = wordLines(plain.slice(indent.length), Math.max(1, most - indent.length));
  return lines.map((line) => before + indent + line + after);
}

function wordLines(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (textWidth(longer) <= most) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    line = word;
    // A word longer than a line is cut.
    while (textWidth(line) > most) {
      const piece = head(line, most, 1);
      lines.push(piece);
      line = line.slice(piece.length);
    }
  }
  return line === "" && lines.length > 0 ? lines : [...lines, line];
}

/** Returns as much of a text as some columns hold, and `least` characters at least. */
function head(text: string, most: number, least = 0): string {
  let kept = "";
  let width = 0;
  let count = 0;
  for (const { segment } of graphemes(text)) {
    width += graphemeWidth(segment);
    if (count >= least && width > most) break;
    kept += segment;
    count += 1;
  }
  return kept;
}
