import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./lock.ts";

/** A Go module beside this file that pins the versions of some programs. */
export interface GoModule {
  /** Folder with go.mod and go.sum. */
  readonly folder: string;
  /** Part of the cache's path. */
  readonly name: string;
  /** Go package of each binary. */
  readonly packages: Readonly<Record<string, string>>;
  readonly ldflags: string;
  readonly tags?: string;
  /** Files to keep beside the binaries: name in the cache, and what makes them under a given path. */
  readonly extras?: Readonly<Record<string, (path: string) => void>>;
}

const PROGRESS_MS = 5000;
const WORK_PREFIX = "building-";

/** Folder of a module in the source tree. */
export function moduleFolder(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** Folder with the sources of a module that the one in `folder` requires. */
export function moduleSource(folder: string, module: string): string {
  const list = spawnSync("go", ["list", "-m", "-f", "{{.Dir}}", module], { cwd: folder, encoding: "utf8" });
  const source = list.stdout.trim();
  if (list.status !== 0 || source === "")
    throw new Error(`The sources of ${module} are not to be found: ${list.stderr.trim()}`);
  return source;
}

/** Folder for what this project keeps between runs. */
export function cacheDirectory(): string {
  const xdg = process.env.XDG_CACHE_HOME;
  return join(xdg === undefined || xdg === "" ? join(homedir(), ".cache") : xdg, "legation");
}

/** Where a module's binaries are kept; the key changes with everything that goes into them. */
export function moduleCache(module: GoModule): string {
  const hash = createHash("sha256");
  for (const file of ["go.mod", "go.sum"]) hash.update(readFileSync(join(module.folder, file))).update("\0");
  hash.update([module.ldflags, process.platform, process.arch].join("\0"));
  return join(cacheDirectory(), module.name, hash.digest("hex").slice(0, 16));
}

function requireGo(names: readonly string[]): void {
  if (spawnSync("go", ["version"]).status === 0) return;
  throw new Error(
    `The test clusters need ${names.join(", ")}, which are built once with Go, and there is no Go: install Go 1.26 or ` +
      "newer (https://go.dev/dl). A folder named by KUBEBUILDER_ASSETS can replace all but kwok and its stages.",
  );
}

async function goBuild(
  target: string,
  args: readonly string[],
  cwd: string,
  onProgress: (line: string) => void,
): Promise<void> {
  const start = performance.now();
  const elapsed = (): string => `${Math.round((performance.now() - start) / 1000)} s`;
  let compiled = 0;
  let downloaded = 0;
  let output = "";
  const child = spawn("go", ["build", "-v", "-trimpath", "-buildvcs=false", ...args], {
    cwd,
    stdio: ["ignore", "ignore", "pipe"],
  });
  child.stderr.on("data", (chunk: Buffer) => {
    const text = chunk.toString();
    output = (output + text).slice(-4000);
    for (const line of text.split("\n")) {
      if (line.startsWith("go: downloading")) downloaded += 1;
      else if (line !== "") compiled += 1;
    }
  });
  const timer = setInterval(
    () => onProgress(`${target}: ${elapsed()}, ${downloaded} modules downloaded, ${compiled} packages compiled`),
    PROGRESS_MS,
  );
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    if (code !== 0) throw new Error(`Building ${target} with Go failed:\n${output.trimEnd()}`);
    onProgress(`${target}: built in ${elapsed()}`);
  } finally {
    clearInterval(timer);
  }
}

/**
 * Builds what the cache lacks of these binaries and of the module's extras, and returns the cache's folder. A second process waits
 * for the first and finds its work.
 */
export async function ensureBuilt(
  module: GoModule,
  names: readonly string[],
  onProgress: (line: string) => void,
): Promise<string> {
  const cache = moduleCache(module);
  const missing = (): string[] =>
    [...names, ...Object.keys(module.extras ?? {})].filter((name) => !existsSync(join(cache, name)));
  if (missing().length === 0) return cache;
  requireGo(missing());
  mkdirSync(cache, { recursive: true });
  await withLock(join(cache, "build.lock"), onProgress, async () => {
    // Left by a build that was killed: whoever holds the lock is the only one.
    for (const entry of readdirSync(cache)) {
      if (entry.startsWith(WORK_PREFIX)) rmSync(join(cache, entry), { recursive: true, force: true });
    }
    const work = mkdtempSync(join(cache, WORK_PREFIX));
    try {
      const wanted = missing();
      if (wanted.length > 0)
        onProgress(`building ${wanted.join(", ")} into ${cache}: minutes the first time, then never again`);
      for (const [index, name] of wanted.entries()) {
        const output = join(work, name);
        const goPackage = module.packages[name];
        if (goPackage === undefined) module.extras?.[name]?.(output);
        else {
          const tags = module.tags === undefined ? [] : ["-tags", module.tags];
          const args = [...tags, "-ldflags", module.ldflags, "-o", output, goPackage];
          await goBuild(`${name} (${index + 1} of ${wanted.length})`, args, module.folder, onProgress);
        }
        // A rename is atomic: what is there is whole.
        renameSync(output, join(cache, name));
      }
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
  return cache;
}
