import { existsSync } from "node:fs";
import { join } from "node:path";
import { cacheOf, ensureBuilt, type GoPrograms, moduleFolder, moduleIn } from "../build.ts";
import { planesPrograms } from "../planes.ts";
import { cniPlugins, realNodesPossible, staticBusybox } from "./possible.ts";

/** Full paths of what a real node is made of. */
export interface NodeBinaries {
  readonly kubelet: string;
  /** Folder with containerd, its shim and ctr. */
  readonly containerd: string;
  readonly runc: string;
  /** Folder with the CNI plugins. */
  readonly cni: string;
  readonly busybox: string;
}

// Modules of their own: their requirements clash with each other's and with Kubernetes'.
const CONTAINERD_PACKAGE = "github.com/containerd/containerd/v2/cmd";
const CONTAINERD: GoPrograms = {
  ...moduleIn(moduleFolder("node/containerd")),
  name: "containerd",
  packages: {
    containerd: `${CONTAINERD_PACKAGE}/containerd`,
    "containerd-shim-runc-v2": `${CONTAINERD_PACKAGE}/containerd-shim-runc-v2`,
    ctr: `${CONTAINERD_PACKAGE}/ctr`,
  },
  ldflags: "-s -w",
};
const RUNC: GoPrograms = {
  ...moduleIn(moduleFolder("node/runc")),
  name: "runc",
  packages: { runc: "github.com/opencontainers/runc" },
  ldflags: "-s -w",
  tags: "seccomp runc_nocriu",
};

/** Returns what of a real node is not cached yet, so that `findNodeBinaries` builds it. */
export function nodeBinariesToBuild(): string[] {
  const lacking = (programs: GoPrograms, names: readonly string[]): string[] =>
    names.filter((name) => !existsSync(join(cacheOf(programs), name)));
  return [
    ...lacking(planesPrograms(), ["kubelet"]),
    ...[CONTAINERD, RUNC].flatMap((programs) => lacking(programs, Object.keys(programs.packages))),
  ];
}

/** Builds what is not cached yet; throws when this machine cannot run real nodes. */
export async function findNodeBinaries(onProgress: (line: string) => void): Promise<NodeBinaries> {
  const obstacle = realNodesPossible();
  const cni = cniPlugins();
  const busybox = staticBusybox();
  if (obstacle !== undefined || cni === undefined || busybox === undefined) {
    throw new Error(`No real node can run here: ${obstacle ?? "its packages are missing"}.`);
  }
  const planes = await ensureBuilt(planesPrograms(), ["kubelet"], onProgress);
  const containerd = await ensureBuilt(CONTAINERD, Object.keys(CONTAINERD.packages), onProgress);
  const runc = await ensureBuilt(RUNC, ["runc"], onProgress);
  return { kubelet: join(planes, "kubelet"), containerd, runc: join(runc, "runc"), cni, busybox };
}
