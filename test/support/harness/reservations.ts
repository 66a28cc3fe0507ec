import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

/**
 * Files that take Legation out of the shared clusters have the first set to themselves until the last of them has got it: another
 * file in between would install Legation for the next to take it out again.
 */
export function reserve(turns: string, files: readonly string[]): void {
  mkdirSync(folder(turns));
  for (const path of files) writeFileSync(reservation(turns, path), "");
}

/** The file has got its set. */
export function takeReservation(turns: string, path: string): void {
  rmSync(reservation(turns, path), { force: true });
}

/** True while a file that has not run yet is to have the first set. */
export function isReserved(turns: string): boolean {
  return readdirSync(folder(turns)).length > 0;
}

function folder(turns: string): string {
  return join(turns, "reserved");
}

function reservation(turns: string, path: string): string {
  return join(folder(turns), basename(path));
}
