import { counted } from "../../api/wording.ts";
import { textWidth } from "./text-width.ts";

/** The last column is text where it is wider than this, and may go on in further lines: a reason has room for some words. */
export const LEAST_TEXT = 20;
const LEAST_COLUMN = 4;

interface TableRoom {
  readonly width: number;
  readonly gap: number;
}

export function fits(widths: readonly number[], { width, gap }: TableRoom): boolean {
  return widths.reduce((sum, each) => sum + each + gap, -gap) <= width;
}

/** Returns the columns that fit into the terminal in full, by index. Those of `optional` go first, the least important first. */
export function keptColumns(widths: readonly number[], optional: readonly number[], room: TableRoom): number[] {
  let kept = [...widths.keys()];
  for (const column of optional) {
    const own = kept.map((each) => widths[each] ?? 0);
    const isText = (own.at(-1) ?? 0) > LEAST_TEXT;
    if (fits(isText ? own.slice(0, -1) : own, room)) break;
    kept = kept.filter((each) => each !== column);
  }
  return kept;
}

/** Returns the line below a table that leaves columns out. None if it is longer than the terminal is wide. */
export function omissionNote(titles: readonly string[], width: number): string[] {
  const more = counted(titles.length, "more column");
  const notes = titles.length === 0 ? [] : [titles.join(", "), more].map((what) => `(-o wide shows ${what})`);
  return notes.filter((note) => textWidth(note) <= width).slice(0, 1);
}

/** Returns the widths of columns in a terminal. The widest give way first, then names and titles. */
export function fittedWidths(wanted: readonly number[], titles: readonly number[], room: TableRoom): number[] {
  const fitted = [...wanted];
  const least = titles.map((title) => Math.max(LEAST_COLUMN, title));
  const keepingNames = least.map((each, column) => (column === 0 ? (wanted[0] ?? 0) : each));
  for (const limits of [keepingNames, least, least.map(() => LEAST_COLUMN)]) {
    while (!fits(fitted, room)) {
      const spare = fitted.map((each, column) => each - (limits[column] ?? 0));
      const column = spare.indexOf(Math.max(1, ...spare));
      if (column === -1) break;
      fitted[column] = (fitted[column] ?? 0) - 1;
    }
  }
  return fitted;
}
