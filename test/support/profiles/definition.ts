import { fileURLToPath } from "node:url";
import type { ClusterProfile } from "../../../src/api/kubernetes.ts";
import { resourceOf } from "../../../src/kube/optional-resource.ts";
import { clusterProfiles, type Resource } from "../../../src/kube/resources.ts";
import type { Cluster } from "../clusters/types.ts";
import { installDefinitions, removeDefinitions } from "../harness/definitions.ts";

/** File with the definition. */
export const DEFINITION: string = fileURLToPath(new URL("clusterprofiles.yaml", import.meta.url));

/** ClusterProfiles in their served version. */
export const profilesV1alpha1: Resource<ClusterProfile> = resourceOf(clusterProfiles, {});

/** Installs the definition of ClusterProfiles, as the Cluster Inventory API releases it. */
export async function installClusterProfiles(cluster: Cluster): Promise<void> {
  await installDefinitions(cluster, DEFINITION);
}

/** Removes the definition with all profiles. */
export async function removeClusterProfiles(cluster: Cluster): Promise<void> {
  await removeDefinitions(cluster, DEFINITION);
}
