import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { cacheOf, ensureBuilt } from "./build.ts";
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

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns what is neither in KUBEBUILDER_ASSETS nor in the cache, so that `findBinaries` builds it. */
export function binariesToBuild(): string[] {
  const cache = cacheOf(planesPrograms());
  return notGiven().filter((name) => !isExecutable(join(cache, name)));
}

function notGiven(): (typeof NAMES)[number][] {
  const assets = process.env.KUBEBUILDER_ASSETS ?? "";
  return NAMES.filter((name) => assets === "" || !isExecutable(join(assets, name)));
}

/**
 * Finds every binary in KUBEBUILDER_ASSETS, as envtest does, then in the cache. Builds missing ones with Go, once per
 * version.
 */
export async function findBinaries(onProgress: (line: string) => void = () => {}): Promise<Binaries> {
  const assets = process.env.KUBEBUILDER_ASSETS ?? "";
  const others = notGiven();
  const module = planesPrograms();
  if (assets !== "" && binariesToBuild().length > 0) {
    onProgress(`KUBEBUILDER_ASSETS=${assets} has no ${others.join(", ")}: building from source`);
  }
  const cache = await ensureBuilt(module, others, onProgress);
  const pathOf = (name: (typeof NAMES)[number]): string => join(others.includes(name) ? cache : assets, name);
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
