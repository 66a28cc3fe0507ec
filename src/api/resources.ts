import { clusterScoped, inVersions, namespaced, type OptionalResource, type Resource } from "../kube/resources.ts";
import type { Cluster } from "./cluster.ts";
import type { AnyObject, DelegatedType } from "./delegated-type.ts";
import { GROUP } from "./keys.ts";
import type { CapacityProvider, ClusterQueue, LocalQueue, ResourceFlavor } from "./kueue.ts";
import type { AdmissionCheck, Workload } from "./kueue-workload.ts";
import type { PlacementDefaults } from "./placement-defaults.ts";

const VERSION = { version: "v1alpha1" } as const;

export const clusters: Resource<Cluster> = { ...clusterScoped<Cluster>(GROUP, "Cluster"), ...VERSION };
export const placementDefaults: Resource<PlacementDefaults> = {
  ...{ ...clusterScoped<PlacementDefaults>(GROUP, "PlacementDefaults"), ...VERSION },
  plural: "placementdefaults",
};
/** PlacementDefaults where the host may lack them: an earlier version was installed, or their definition was deleted. */
export const optionalDefaults: OptionalResource<PlacementDefaults> = {
  ...inVersions(placementDefaults, [VERSION.version]),
  lookAgainMs: 10_000,
};
export const delegatedTypes: Resource<DelegatedType> = {
  ...clusterScoped<DelegatedType>(GROUP, "DelegatedType"),
  ...VERSION,
};

const KUEUE = "kueue.x-k8s.io";
const KUEUE_VERSIONS = ["v1beta2", "v1beta1"] as const;

export const resourceFlavors: OptionalResource<ResourceFlavor> = inVersions(
  clusterScoped(KUEUE, "ResourceFlavor"),
  KUEUE_VERSIONS,
);
export const clusterQueues: OptionalResource<ClusterQueue> = inVersions(
  clusterScoped(KUEUE, "ClusterQueue"),
  KUEUE_VERSIONS,
);
export const localQueues: OptionalResource<LocalQueue> = inVersions(namespaced(KUEUE, "LocalQueue"), KUEUE_VERSIONS);
export const workloads: OptionalResource<Workload> = inVersions(namespaced(KUEUE, "Workload"), KUEUE_VERSIONS);
export const capacityProviders: OptionalResource<CapacityProvider> = inVersions(
  clusterScoped(KUEUE, "CapacityProvider"),
  ["v1alpha1"],
);
export const admissionChecks: OptionalResource<AdmissionCheck> = inVersions(
  clusterScoped(KUEUE, "AdmissionCheck"),
  KUEUE_VERSIONS,
);

export function resourceOfType({ spec }: Pick<DelegatedType, "spec">): Resource<AnyObject> {
  const { group = "", version, plural, kind, scope = "Namespaced" } = spec;
  return { group, version, plural, kind, namespaced: scope === "Namespaced" };
}
