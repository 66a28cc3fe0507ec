import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "./kubectl.ts";

/** Installs the CustomResourceDefinitions of a file or folder in a cluster. Resolves once they are established. */
export async function installDefinitions(cluster: Cluster, path: string): Promise<void> {
  await kubectl(cluster, ["apply", "--server-side", "-f", path]);
  await kubectl(cluster, ["wait", "--for=condition=Established", "--timeout=60s", "-f", path]);
}

/** Removes the definitions with all their objects. */
export async function removeDefinitions(cluster: Cluster, path: string): Promise<void> {
  await kubectl(cluster, ["delete", "--ignore-not-found", "-f", path]);
}
