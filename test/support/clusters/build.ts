import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "./lock.ts";

/** Go package of each binary; the module in `planes/` pins their versions. */
export const PLANE_PACKAGES = {
  etcd: "go.etcd.io/etcd/server/v3",
  "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
  "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
  "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
  kubectl: "k8s.io/kubernetes/cmd/kubectl",
  kwok: "sigs.k8s.io/kwok/cmd/kwok",
} as const;

const MODULE = fileURLToPath(new URL("planes", import.meta.url));
const PROGRESS_MS = 5000;
/** Folders of the stages in kwok's module; the slash becomes a dash in the cache. */
const KWOK_STAGES = ["node/fast", "node/heartbeat-with-lease", "pod/fast"];

/** Folder for what this project keeps between runs. */
export function cacheDirectory(): string {
  const xdg = process.env.XDG_CACHE_HOME;
  return join(xdg === undefined || xdg === "" ? join(homedir(), ".cache") : xdg, "legation");
}

/**
 * Linker flags that set the version: a binary built from a module says v0.0.0-master, which clients refuse to parse.
 * The version is the one that the module requires.
 */
export function versionFlags(goMod: string): string {
  const version = /^\s*k8s\.io\/kubernetes (v(\d+)\.(\d+)\.\S+)/m.exec(goMod);
  if (version === null) throw new Error("The planes' go.mod does not require k8s.io/kubernetes.");
  const [, gitVersion, major, minor] = version;
  const set = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((pkg) => [
    `-X ${pkg}.gitVersion=${gitVersion}`,
    `-X ${pkg}.gitMajor=${major}`,
    `-X ${pkg}.gitMinor=${minor}`,
  ]);
  return ["-s", "-w", ...set].join(" ");
}

interface PlanesCache {
  readonly directory: string;
  readonly kwokStages: string;
  readonly ldflags: string;
}

/** Where the binaries of the pinned versions are kept; the key changes with everything that goes into them. */
export function planesCache(): PlanesCache {
  const goMod = readFileSync(join(MODULE, "go.mod"), "utf8");
  const goSum = readFileSync(join(MODULE, "go.sum"), "utf8");
  const ldflags = versionFlags(goMod);
  const hash = createHash("sha256").update([goMod, goSum, ldflags, process.platform, process.arch].join("\0"));
  const directory = join(cacheDirectory(), "planes", hash.digest("hex").slice(0, 16));
  return { directory, kwokStages: join(directory, "kwok-stages"), ldflags };
}

/** Throws one sentence with the remedy when there is no Go to build with. */
export function requireGo(): void {
  const go = spawnSync("go", ["version"], { encoding: "utf8" });
  if (go.status === 0) return;
  throw new Error(
    "The Kubernetes binaries for the test clusters must be built once, and there is no Go: install Go 1.26 or newer " +
      "(https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl.",
  );
}

/** One `go build`; `target` says what is built in progress lines. */
export async function goBuild(
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

function copyKwokStages(to: string): void {
  const list = spawnSync("go", ["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"], { cwd: MODULE, encoding: "utf8" });
  const source = list.stdout.trim();
  if (list.status !== 0 || source === "") throw new Error(`kwok's module is not to be found: ${list.stderr.trim()}`);
  mkdirSync(to);
  for (const stage of KWOK_STAGES) {
    const target = join(to, stage.replace("/", "-"));
    cpSync(join(source, "kustomize/stage", stage), target, {
      recursive: true,
      filter: (path) => basename(path) !== "testdata",
    });
  }
}

/** Builds these binaries into the cache. A second process waits for the first and finds its work. */
export async function buildPlanes(
  names: readonly (keyof typeof PLANE_PACKAGES)[],
  onProgress: (line: string) => void,
): Promise<void> {
  requireGo();
  const cache = planesCache();
  mkdirSync(cache.directory, { recursive: true });
  await withLock(join(cache.directory, "build.lock"), onProgress, async () => {
    const work = mkdtempSync(join(cache.directory, "building-"));
    try {
      onProgress(`building ${names.join(", ")} into ${cache.directory} (minutes the first time, then never again)`);
      for (const [index, name] of names.entries()) {
        const target = join(cache.directory, name);
        if (!existsSync(target)) {
          const output = join(work, name);
          const args = ["-ldflags", cache.ldflags, "-o", output, PLANE_PACKAGES[name]];
          await goBuild(`${name} (${index + 1} of ${names.length})`, args, MODULE, onProgress);
          // A rename is atomic: a binary is whole or not there.
          renameSync(output, target);
        }
        if (name === "kwok" && !existsSync(cache.kwokStages)) {
          copyKwokStages(join(work, "kwok-stages"));
          renameSync(join(work, "kwok-stages"), cache.kwokStages);
        }
      }
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
}
