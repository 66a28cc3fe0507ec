import { accessSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { buildPlanes, PLANE_PACKAGES, planesCache } from "./build.ts";

/** Names of the binaries that the clusters are made of. */
export type Binary = keyof typeof PLANE_PACKAGES;

/** Full path of each binary, and the folder with kwok's stages. */
export interface Binaries {
  readonly paths: Readonly<Record<Binary, string>>;
  readonly kwokStages: string;
}

const NAMES = Object.keys(PLANE_PACKAGES).filter((name): name is Binary => name in PLANE_PACKAGES);

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Finds every binary: first in the folder KUBEBUILDER_ASSETS, as envtest does, then in the cache.
 * What is in neither is built with Go into the cache, once per version. kwok and its stages always come from there:
 * they must fit each other.
 */
export async function findBinaries(onProgress: (line: string) => void = () => {}): Promise<Binaries> {
  const assets = process.env.KUBEBUILDER_ASSETS;
  const cache = planesCache();
  const inAssets = (name: Binary): boolean =>
    assets !== undefined && assets !== "" && name !== "kwok" && isExecutable(join(assets, name));
  const cached = (name: Binary): boolean => isExecutable(join(cache.directory, name));
  const missing = NAMES.filter((name) => !inAssets(name) && !(cached(name) && (name !== "kwok" || hasStages())));
  function hasStages(): boolean {
    return existsSync(cache.kwokStages);
  }
  if (missing.length > 0) {
    if (assets !== undefined && assets !== "") {
      onProgress(`KUBEBUILDER_ASSETS=${assets} has no ${missing.join(", ")}: building from source`);
    }
    await buildPlanes(missing, onProgress);
  }
  const pathOf = (name: Binary): string =>
    join(inAssets(name) && assets !== undefined ? assets : cache.directory, name);
  return {
    paths: {
      etcd: pathOf("etcd"),
      "kube-apiserver": pathOf("kube-apiserver"),
      "kube-controller-manager": pathOf("kube-controller-manager"),
      "kube-scheduler": pathOf("kube-scheduler"),
      kubectl: pathOf("kubectl"),
      kwok: pathOf("kwok"),
    },
    kwokStages: cache.kwokStages,
  };
}
