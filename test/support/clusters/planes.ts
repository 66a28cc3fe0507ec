import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type GoPrograms, moduleFolder, moduleIn, moduleSource } from "./build.ts";

/** Name of kwok's stages beside the planes' binaries. */
export const KWOK_STAGES = "kwok-stages";

const FOLDER = moduleFolder("planes");

/**
 * Returns linker flags with the module's version: a plain build reports v0.0.0-master, which clients refuse to parse.
 */
export function versionFlags(folder: string): string {
  const goMod = readFileSync(join(folder, "go.mod"), "utf8");
  const version = /^\s*k8s\.io\/kubernetes (v(\d+)\.(\d+)\.\S+)/m.exec(goMod);
  if (version === null) throw new Error(`${folder}/go.mod does not require k8s.io/kubernetes.`);
  const [, gitVersion, major, minor] = version;
  const set = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((goPackage) => [
    `-X ${goPackage}.gitVersion=${gitVersion}`,
    `-X ${goPackage}.gitMajor=${major}`,
    `-X ${goPackage}.gitMinor=${minor}`,
  ]);
  return ["-s", "-w", ...set].join(" ");
}

function copyKwokStages(to: string): void {
  const source = moduleSource(FOLDER, "sigs.k8s.io/kwok");
  mkdirSync(to);
  for (const stage of ["node/fast", "node/heartbeat-with-lease", "pod/fast"]) {
    cpSync(join(source, "kustomize/stage", stage), join(to, stage.replace("/", "-")), {
      recursive: true,
      filter: (path) => basename(path) !== "testdata",
    });
  }
}

/** Kubernetes' own programs, etcd and kwok. */
export function planesPrograms(): GoPrograms {
  return {
    ...moduleIn(FOLDER),
    name: "planes",
    needs: "The test clusters need",
    instead: " A folder named by KUBEBUILDER_ASSETS can replace all but kwok and its stages.",
    packages: {
      etcd: "go.etcd.io/etcd/server/v3",
      "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
      "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
      "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
      kubectl: "k8s.io/kubernetes/cmd/kubectl",
      kwok: "sigs.k8s.io/kwok/cmd/kwok",
      kubelet: "k8s.io/kubernetes/cmd/kubelet",
    },
    ldflags: versionFlags(FOLDER),
    extras: { [KWOK_STAGES]: copyKwokStages },
  };
}
