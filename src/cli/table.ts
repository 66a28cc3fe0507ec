import { stripVTControlCharacters } from "node:util";

/** Aligns rows in columns, two spaces apart, as kubectl does; colours do not count as width. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => visibleLength(row[column] ?? ""))));
  return all
    .map((row) =>
      header
        .map((_, column) => {
          const cell = row[column] ?? "";
          return cell + " ".repeat((widths[column] ?? 0) - visibleLength(cell));
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function visibleLength(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** A time span as kubectl prints ages: the largest unit, the next one too while it is small. */
export function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  return `${Math.floor(hours / 24)}d`;
}
