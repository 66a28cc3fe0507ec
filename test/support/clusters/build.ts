import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./lock.ts";

/** Go programs that are built once. */
export interface GoPrograms extends GoSources {
  /** Part of the cache's path. */
  readonly name: string;
  /** Go package of each binary. */
  readonly packages: Readonly<Record<string, string>>;
  readonly ldflags: string;
  /** Begins the error where there is no Go. */
  readonly needs?: string;
  /** Ends that error: what else would help. */
  readonly instead?: string;
  readonly tags?: string;
  /** Disables cgo, so that binaries run without the machine's libraries. */
  readonly isStatic?: boolean;
  /** Compiles the packages' tests into the binaries, as `go test -c` does. */
  readonly isTest?: boolean;
  /** Files to keep beside the binaries: name in the cache, and what makes them under a given path, from the sources. */
  readonly extras?: Readonly<Record<string, (path: string, sources: string) => void>>;
}

/** The sources of programs. */
export interface GoSources {
  /** Input of the cache's key: all that decides versions. */
  pins(): readonly string[];
  /** Folder in which `go build` runs; `work` is an empty folder for what has to be made for that. */
  sources(work: string): string;
}

const PROGRESS_MS = 5000;
const WORK_PREFIX = "building-";
// A build uses all cores while it compiles, and one while it links.
const CORES_PER_BUILD = 2;

/** Folder of a module in the source tree. */
export function moduleFolder(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** Programs of a module that is nothing but a list of versions: `folder` has its go.mod and go.sum. */
export function moduleIn(folder: string): GoSources {
  return {
    pins: () => ["go.mod", "go.sum"].map((file) => readFileSync(join(folder, file), "utf8")),
    sources: () => folder,
  };
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

/** Returns the cache folder of programs. Its key covers everything that goes into them. */
export function cacheOf(programs: GoPrograms): string {
  const hash = createHash("sha256");
  for (const pin of programs.pins()) hash.update(pin).update("\0");
  hash.update([programs.ldflags, process.platform, process.arch].join("\0"));
  return join(cacheDirectory(), programs.name, hash.digest("hex").slice(0, 16));
}

function requireGo(names: readonly string[], { needs = "The tests need", instead = "" }: GoPrograms): void {
  if (spawnSync("go", ["version"]).status === 0) return;
  throw new Error(
    `${needs} ${names.join(", ")}, which are built once with Go, and there is no Go: install Go 1.26 or newer ` +
      `(https://go.dev/dl).${instead}`,
  );
}

async function goBuild(
  target: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  onProgress: (line: string) => void,
): Promise<void> {
  const start = performance.now();
  const elapsed = (): string => `${Math.round((performance.now() - start) / 1000)} s`;
  let compiled = 0;
  let downloaded = 0;
  let output = "";
  const child = spawn("go", args, {
    cwd,
    env,
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

/** Builds one of some programs, or makes one of their extras, as the file `output`. */
async function buildOne(
  programs: GoPrograms,
  name: string,
  { output, sources, place }: { readonly output: string; readonly sources: string; readonly place: string },
  onProgress: (line: string) => void,
): Promise<void> {
  const goPackage = programs.packages[name];
  if (goPackage === undefined) {
    programs.extras?.[name]?.(output, sources);
    return;
  }
  const tags = programs.tags === undefined ? [] : ["-tags", programs.tags];
  const verb = programs.isTest === true ? ["test", "-c", "-vet=off"] : ["build", "-v"];
  const flags = [...tags, "-trimpath", "-buildvcs=false", "-ldflags", programs.ldflags];
  const args = [...verb, ...flags, "-o", output, goPackage];
  const env = programs.isStatic === true ? { ...process.env, CGO_ENABLED: "0" } : process.env;
  await goBuild(`${name} (${place})`, args, sources, env, onProgress);
}

/** Works on all items, at most so many at a time; begins no other once one has failed. */
export async function inParallel<T>(
  items: readonly T[],
  most: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  let failed = false;
  const worker = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined && !failed; item = waiting.shift()) {
      try {
        await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const results = await Promise.allSettled(Array.from({ length: Math.max(1, most) }, worker));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

/** Builds missing binaries and extras, and returns the cache's folder. A second process waits for the first. */
export async function ensureBuilt(
  programs: GoPrograms,
  names: readonly string[],
  onProgress: (line: string) => void,
): Promise<string> {
  const cache = cacheOf(programs);
  const missing = (): string[] =>
    [...names, ...Object.keys(programs.extras ?? {})].filter((name) => !existsSync(join(cache, name)));
  if (missing().length === 0) return cache;
  requireGo(missing(), programs);
  mkdirSync(cache, { recursive: true });
  await withLock(join(cache, "build.lock"), onProgress, async () => {
    // Left by a killed build: the lock excludes running ones.
    for (const entry of readdirSync(cache)) {
      if (entry.startsWith(WORK_PREFIX)) rmSync(join(cache, entry), { recursive: true, force: true });
    }
    const wanted = missing();
    if (wanted.length === 0) return;
    const work = mkdtempSync(join(cache, WORK_PREFIX));
    try {
      onProgress(`building ${wanted.join(", ")} into ${cache}: minutes the first time, then never again`);
      const sources = programs.sources(join(work, "sources"));
      await inParallel(
        [...wanted.entries()],
        Math.floor(availableParallelism() / CORES_PER_BUILD),
        async ([index, name]) => {
          const output = join(work, `built-${index}`);
          const place = `${index + 1} of ${wanted.length}`;
          await buildOne(programs, name, { output, sources, place }, onProgress);
          // A rename is atomic: what is there is whole.
          renameSync(output, join(cache, name));
        },
      );
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
  return cache;
}
