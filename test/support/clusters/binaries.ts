import { spawnSync } from "node:child_process";
import { accessSync, constants, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { cacheOf, ensureBuilt, moduleFolder } from "./build.ts";
import { type BinarySource, chooseSources, type Minor, minorOf, newestOf } from "./found-binaries.ts";
import { KWOK_STAGES, planesPrograms } from "./planes.ts";

/** Full paths of what every cluster is made of. */
export interface Binaries {
  readonly etcd: string;
  readonly "kube-apiserver": string;
  readonly "kube-controller-manager": string;
  readonly "kube-scheduler": string;
  readonly kubectl: string;
  readonly kwok: string;
  /** Folder with kwok's own stages. */
  readonly kwokStages: string;
}

// Binaries of every start; the kubelet is only for real nodes.
const NAMES = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"] as const;
type Name = (typeof NAMES)[number];

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns where each binary of a cluster is taken from. Those without a source are built. */
export function binarySources(): ReadonlyMap<Name, BinarySource | undefined> {
  const assets = process.env.KUBEBUILDER_ASSETS ?? "";
  const kubernetes = pinnedMinor("k8s.io/kubernetes");
  return chooseSources(NAMES, isExecutable, {
    assets: assets === "" ? undefined : assets,
    cache: cacheOf(planesPrograms()),
    envtest: kubernetes === undefined ? undefined : envtestFolder(kubernetes),
    // Their versions are asked only where nothing else has them.
    path: {
      kubectl: () => onPath("kubectl", ["version", "--client", "-o", "json"], kubernetes, 1),
      kwok: () => onPath("kwok", ["--version"], pinnedMinor("sigs.k8s.io/kwok"), 0),
    },
  });
}

/** Returns the newest folder of `setup-envtest` with binaries of this minor version. */
function envtestFolder(minor: Minor): string | undefined {
  const { XDG_DATA_HOME: data = "" } = process.env;
  const store =
    process.platform === "darwin"
      ? join(homedir(), "Library", "Application Support", "io.kubebuilder.envtest", "k8s")
      : join(data === "" ? join(homedir(), ".local", "share") : data, "kubebuilder-envtest", "k8s");
  try {
    const newest = newestOf(readdirSync(store), minor);
    return newest === undefined ? undefined : join(store, newest);
  } catch {
    return undefined;
  }
}

/** Returns a program in PATH whose minor version is the wanted one, or so many away. */
function onPath(
  name: Name,
  args: readonly string[],
  wanted: Minor | undefined,
  skew: number,
): BinarySource | undefined {
  const folder = (process.env.PATH ?? "")
    .split(delimiter)
    .find((each) => each !== "" && isExecutable(join(each, name)));
  if (folder === undefined || wanted === undefined) return undefined;
  const found = minorOf(spawnSync(join(folder, name), args, { encoding: "utf8", timeout: 10_000 }).stdout ?? "");
  if (found?.major !== wanted.major || Math.abs(found.minor - wanted.minor) > skew) return undefined;
  return { path: join(folder, name), from: "PATH" };
}

/** Returns the minor versions that the planes are built from, such as `1.36`. */
export function builtVersions(): { readonly kubernetes: string; readonly kwok: string } {
  const textOf = (found: Minor | undefined): string => (found === undefined ? "" : `${found.major}.${found.minor}`);
  return { kubernetes: textOf(pinnedMinor("k8s.io/kubernetes")), kwok: textOf(pinnedMinor("sigs.k8s.io/kwok")) };
}

/** Returns the minor version of a module that the planes are built from. */
function pinnedMinor(module: string): Minor | undefined {
  const goMod = readFileSync(join(moduleFolder("planes"), "go.mod"), "utf8");
  const line = goMod.split("\n").find((each) => each.trim().startsWith(`${module} `));
  return line === undefined ? undefined : minorOf(line);
}

/** Returns what is not on the machine, so that `findBinaries` builds it. */
export function binariesToBuild(): string[] {
  const names = [...binarySources()].filter(([, source]) => source === undefined).map(([name]) => name);
  const hasStages = existsFolder(join(cacheOf(planesPrograms()), KWOK_STAGES));
  return [...names, ...(hasStages ? [] : ["kwok's stages"])];
}

function existsFolder(path: string): boolean {
  try {
    return readdirSync(path).length > 0;
  } catch {
    return false;
  }
}

/**
 * Finds every binary in KUBEBUILDER_ASSETS, as envtest does, then in the cache, in the folder of `setup-envtest` and in PATH.
 * Builds missing ones with Go, once per version.
 */
export async function findBinaries(onProgress: (line: string) => void = () => {}): Promise<Binaries> {
  const sources = binarySources();
  const missing = NAMES.filter((name) => sources.get(name) === undefined);
  const { KUBEBUILDER_ASSETS: assets = "" } = process.env;
  if (assets !== "" && missing.length > 0) {
    onProgress(`KUBEBUILDER_ASSETS=${assets} has no ${missing.join(", ")}: building from source`);
  }
  const cache = await ensureBuilt(planesPrograms(), missing, onProgress);
  const pathOf = (name: Name): string => sources.get(name)?.path ?? join(cache, name);
  return {
    etcd: pathOf("etcd"),
    "kube-apiserver": pathOf("kube-apiserver"),
    "kube-controller-manager": pathOf("kube-controller-manager"),
    "kube-scheduler": pathOf("kube-scheduler"),
    kubectl: pathOf("kubectl"),
    kwok: pathOf("kwok"),
    kwokStages: join(cache, KWOK_STAGES),
  };
}
