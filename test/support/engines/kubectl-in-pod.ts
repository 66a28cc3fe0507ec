import { spawnSync } from "node:child_process";
import { inject } from "vitest";
import type { Container, PodSpec, Volume } from "../../../src/api/kubernetes.ts";

/** The machine's kubectl in a pod, with the libraries that it needs: it finds its API server as every in-cluster client. */
export function kubectlIn(container: Container): Pick<PodSpec, "volumes" | "containers"> {
  const binary = inject("kubectl");
  const libraries = spawnSync("ldd", [binary], { encoding: "utf8" }).stdout.match(/\/\S+(?= \()/g) ?? [];
  const files = [{ from: binary, to: "/bin/kubectl" }, ...libraries.map((path) => ({ from: path, to: path }))];
  const volumes: Volume[] = files.map(({ from }, index) => ({ name: `file-${index}`, hostPath: { path: from } }));
  const volumeMounts = files.map(({ to }, index) => ({ name: `file-${index}`, mountPath: to, readOnly: true }));
  return {
    volumes: [...volumes],
    containers: [{ ...container, volumeMounts: [...volumeMounts, ...(container.volumeMounts ?? [])] }],
  };
}
