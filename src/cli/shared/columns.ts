import { counted } from "../../api/wording.ts";
import { textWidth } from "./text-width.ts";

/** The last column is text where it is wider than this, and may go on in further lines: a reason has room for some words. */
export const LEAST_TEXT = 20;
const LEAST_COLUMN = 4;

export interface TableRoom {
  readonly width: number;
  readonly gap: number;
}

export function totalWidth(widths: readonly number[], gap: number): number {
  return widths.reduce((sum, each) => sum + each, 0) + gap * Math.max(0, widths.length - 1);
}

/** Returns the columns that fit into the terminal in full, by index. Those of `optional` go first, the least important first. */
export function keptColumns(widths: readonly number[], optional: readonly number[], room: TableRoom): number[] {
  let kept = [...widths.keys()];
  for (const column of optional) {
    const own = kept.map((each) => widths[each] ?? 0);
    const isText = (own.at(-1) ?? 0) > LEAST_TEXT;
    if (totalWidth(isText ? own.slice(0, -1) : own, room.gap) <= room.width) break;
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
  const [name = 0] = wanted;
  const least = fitted.map((_, column) => Math.max(LEAST_COLUMN, titles[column] ?? 0));
  const phases = [least.with(0, name), least, fitted.map(() => LEAST_COLUMN)];
  for (const limits of phases) {
    while (totalWidth(fitted, room.gap) > room.width) {
      const spare = fitted.map((each, column) => each - (limits[column] ?? 0));
      const most = Math.max(0, ...spare);
      if (most === 0) break;
      const column = spare.indexOf(most);
      fitted[column] = (fitted[column] ?? 0) - 1;
    }
  }
  return fitted;
}
