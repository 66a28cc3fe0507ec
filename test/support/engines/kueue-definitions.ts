import { join } from "node:path";
import type { Cluster } from "../clusters/types.ts";
import { installDefinitions, removeDefinitions } from "../harness/definitions.ts";
import { ensurePrograms } from "./programs.ts";

/** Installs the definitions that Legation reads in a cluster, without Kueue. */
export async function installKueueDefinitions(cluster: Cluster): Promise<void> {
  for (const file of await files()) await installDefinitions(cluster, file);
}

/** Removes the definitions with all their objects. */
export async function removeKueueDefinitions(cluster: Cluster): Promise<void> {
  for (const file of await files()) await removeDefinitions(cluster, file);
}

async function files(): Promise<string[]> {
  const folder = join(await ensurePrograms("kueue-definitions", () => {}), "crds");
  return ["admissionchecks", "clusterqueues", "localqueues", "resourceflavors", "workloads"].map((one) =>
    join(folder, `kueue.x-k8s.io_${one}.yaml`),
  );
}
