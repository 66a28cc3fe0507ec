import { join } from "node:path";

/** A binary that is on the machine already. */
export interface BinarySource {
  readonly path: string;
  /** Place that a person knows it by: a folder, or `PATH`. */
  readonly from: string;
}

/** Places to look in, the first ones first. */
export interface Places {
  /** Folder of KUBEBUILDER_ASSETS: taken whatever its version. */
  readonly assets: string | undefined;
  /** Folder of what was built. */
  readonly cache: string;
  /** Folder of `setup-envtest` with the version that would be built. */
  readonly envtest: string | undefined;
  /** Programs in PATH that will do. */
  readonly path: Readonly<Partial<Record<string, () => BinarySource | undefined>>>;
}

/** A minor version, such as 1.36. */
export interface Minor {
  readonly major: number;
  readonly minor: number;
}

/** Returns where each program is taken from; undefined for those that have to be built. */
export function chooseSources<Name extends string>(
  names: readonly Name[],
  isExecutable: (path: string) => boolean,
  { assets, cache, envtest, path }: Places,
): ReadonlyMap<Name, BinarySource | undefined> {
  const folders = [assets, cache, envtest].filter((folder) => folder !== undefined);
  return new Map(
    names.map((name) => {
      const folder = folders.find((each) => isExecutable(join(each, name)));
      return [name, folder === undefined ? path[name]?.() : { path: join(folder, name), from: folder }];
    }),
  );
}

/** Returns the first version with a `v` in a text, such as what a program prints of itself. */
export function minorOf(text: string): Minor | undefined {
  const [, major, minor] = /\bv(\d+)\.(\d+)\./.exec(text) ?? [];
  return major === undefined ? undefined : { major: Number(major), minor: Number(minor) };
}

/** Returns the newest of the folders of `setup-envtest`, such as `1.36.2-linux-amd64`, that have this minor version. */
export function newestOf(folders: readonly string[], { major, minor }: Minor): string | undefined {
  const patchOf = (folder: string): number => Number(/^\d+\.\d+\.(\d+)-/.exec(folder)?.[1]);
  return folders
    .filter((folder) => folder.startsWith(`${major}.${minor}.`) && !Number.isNaN(patchOf(folder)))
    .sort((a, b) => patchOf(b) - patchOf(a))[0];
}
