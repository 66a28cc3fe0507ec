import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, realpathSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** Root of the repository. */
export const ROOT: string = join(import.meta.dirname, "..", "..");

/** Copies a file or folder to `target`, following links. */
export function copyTo(from: string, target: string): void {
  mkdirSync(dirname(target), { recursive: true });
  cpSync(realpathSync(from), target, { recursive: true, dereference: true });
}

/** Builds the program with its page into a folder. `npm run check` checks the types. */
export function buildDist(dist: string): void {
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const run = (...args: string[]): unknown => execFileSync(process.execPath, args, { cwd: ROOT });
  run(tsc, "-p", join(ROOT, "tsconfig.build.json"), "--noCheck", "--outDir", dist);
  run(join(ROOT, "scripts", "build-page.ts"), `--dist=${dist}`);
  chmodSync(join(dist, "src", "cli", "main.js"), 0o755);
}

/** Copies the dependencies that `npm prune --omit=dev` keeps into a folder. */
export function copyDependencies(target: string): void {
  const modules = join(ROOT, "node_modules");
  const kept = execFileSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd: ROOT, encoding: "utf8" });
  for (const path of kept.split("\n").filter((line) => line.startsWith(modules))) {
    copyTo(path, join(target, relative(modules, path)));
  }
}
