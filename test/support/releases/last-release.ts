import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ROOT } from "../legation/cli.ts";

/** A release as its users have it: the package that `npm pack` made, unpacked. */
export interface Release {
  readonly version: string;
  /** Folder of the package, with `dist` and `manifests`. */
  readonly folder: string;
  /** Script that is `legation`. */
  readonly main: string;
}

/** The package of the last release, in the tree so that a clone needs no history or registry. */
export const RELEASES: string = join(ROOT, "test", "releases");
// The package finds this version's dependencies in node_modules, and no tool of the project looks at it there.
const CACHE = join(ROOT, "node_modules", ".cache", "legation-releases");

/** The last release, unpacked once. */
export function lastRelease(): Release {
  const packages = readdirSync(RELEASES).flatMap((file) => {
    const version = /^legation-(.+)\.tgz$/.exec(file)?.[1];
    return version === undefined ? [] : [{ file: join(RELEASES, file), version }];
  });
  const [only, ...more] = packages;
  if (only === undefined || more.length > 0) {
    throw new Error(`${RELEASES} must hold the package of the last release and no other: see scripts/release.ts`);
  }
  const folder = join(unpacked(only.file), "package");
  return { version: only.version, folder, main: join(folder, "dist", "src", "cli", "main.js") };
}

/**
 * Loads a module of a release, e.g. `src/api/keys.js`, with this version's type as the caller claims. `before`: its
 * path in older releases.
 */
export async function moduleOf<T>({ folder }: Release, path: string, before: string = path): Promise<T> {
  const [now, then] = [join(folder, "dist", path), join(folder, "dist", before)];
  return await import(pathToFileURL(existsSync(now) ? now : then).href);
}

function unpacked(file: string): string {
  const digest = createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 16);
  const folder = join(CACHE, digest);
  if (existsSync(folder)) return folder;
  mkdirSync(CACHE, { recursive: true });
  const making = mkdtempSync(join(CACHE, "unpacking-"));
  execFileSync("tar", ["-xzf", file, "-C", making]);
  try {
    renameSync(making, folder);
  } catch (error) {
    // Another test has been faster.
    rmSync(making, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
  return folder;
}
