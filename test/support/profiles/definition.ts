import { fileURLToPath } from "node:url";
import type { ClusterProfile } from "../../../src/api/kubernetes.ts";
import { resourceOf } from "../../../src/kube/optional-resource.ts";
import { clusterProfiles, type Resource } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";

/** File with the definition. */
export const DEFINITION: string = fileURLToPath(new URL("clusterprofiles.yaml", import.meta.url));

/** ClusterProfiles in their served version. */
export const profilesV1alpha1: Resource<ClusterProfile> = resourceOf(clusterProfiles, {});

/** Installs the definition of ClusterProfiles, as the Cluster Inventory API releases it. */
export async function installClusterProfiles(cluster: Cluster): Promise<void> {
  await kubectl(cluster, ["apply", "--server-side", "-f", DEFINITION]);
  await kubectl(cluster, ["wait", "--for=condition=Established", "--timeout=30s", "-f", DEFINITION]);
}

/** Removes the definition with all profiles. */
export async function removeClusterProfiles(cluster: Cluster): Promise<void> {
  await kubectl(cluster, ["delete", "--ignore-not-found", "-f", DEFINITION]);
}
