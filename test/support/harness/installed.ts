import { fileURLToPath } from "node:url";
import { startClusters } from "../clusters/start.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "./kubectl.ts";
import { eventually } from "./wait.ts";

/** The folder `kubectl apply -k` is given. */
export const MANIFESTS: string = fileURLToPath(new URL("../../../manifests", import.meta.url));

/**
 * Starts a cluster with manifests/ applied and no process of Legation. It is not shared, since policies and webhooks
 * cover all namespaces. `afterFile` stops it.
 */
export async function startInstalledCluster(
  name: string,
  onFinished: (stop: () => Promise<void>) => void,
): Promise<Cluster> {
  const clusters = await startClusters({
    names: [name],
    clusters: { [name]: { nodes: [{ count: 1 }], audit: false } },
  });
  onFinished(() => clusters.stop());
  const cluster = clusters.get(name);
  await kubectl(cluster, ["apply", "-k", MANIFESTS]);
  await kubectl(cluster, ["wait", "crd/clusters.legation.dev", "--for=condition=Established", "--timeout=30s"]);
  // The API server reads its policies from a watch.
  await eventually(() => isRefused(cluster), { what: `${name}: policies in force` });
  return cluster;
}

async function isRefused(cluster: Cluster): Promise<boolean> {
  const metadata = { name: "never", labels: { "legation.dev/delegation": "no-such-mode" } };
  const input = JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata });
  try {
    await kubectl(cluster, ["create", "--dry-run=server", "-f", "-"], { input });
    return false;
  } catch (error) {
    return error instanceof Error && error.message.includes("ValidatingAdmissionPolicy");
  }
}
