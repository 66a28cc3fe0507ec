import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { SharedPlace } from "./place-of-file.ts";

/** Notes which files are to run on the shared sets of a place. */
export function expectFiles(turns: string, place: SharedPlace, files: readonly string[]): void {
  const folder = folderOf(turns, place);
  mkdirSync(folder);
  for (const path of files) writeFileSync(join(folder, basename(path)), "");
}

/** The file has got its set. */
export function fileCame(turns: string, place: SharedPlace, path: string): void {
  rmSync(join(folderOf(turns, place), basename(path)), { force: true });
}

/** Reports whether every file of the place has its set, so that a released one is not needed again. */
export function noneToCome(turns: string, place: SharedPlace): boolean {
  const folder = folderOf(turns, place);
  return existsSync(folder) && readdirSync(folder).length === 0;
}

function folderOf(turns: string, place: SharedPlace): string {
  return join(turns, `${place}-files`);
}
