import { existsSync } from "node:fs";
import { join } from "node:path";
import { ensurePrograms } from "../../engines/programs.ts";
import { cacheOf, ensureBuilt, type GoPrograms, moduleFolder, moduleIn } from "../build.ts";
import { planesPrograms, versionFlags } from "../planes.ts";
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
  /** Only where a cluster has a service network. */
  readonly service?: ServicePrograms;
}

/** Full paths of the programs by which names and addresses of Services lead to pods. */
export interface ServicePrograms {
  readonly kubeProxy: string;
  readonly coredns: string;
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

// Requires modules that the planes do not.
const KUBE_PROXY_MODULE = moduleFolder("node/kube-proxy");

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

/** Builds kube-proxy and CoreDNS where they are not cached yet. */
export async function findServicePrograms(onProgress: (line: string) => void): Promise<ServicePrograms> {
  const kubeProxy: GoPrograms = {
    ...moduleIn(KUBE_PROXY_MODULE),
    name: "kube-proxy",
    packages: { "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy" },
    ldflags: versionFlags(KUBE_PROXY_MODULE),
  };
  const folder = await ensureBuilt(kubeProxy, ["kube-proxy"], onProgress);
  const coredns = await ensurePrograms("coredns", onProgress);
  return { kubeProxy: join(folder, "kube-proxy"), coredns: join(coredns, "coredns") };
}
