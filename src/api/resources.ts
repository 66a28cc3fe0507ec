import type { OptionalResource, Resource } from "../kube/resources.ts";
import type { Cluster } from "./cluster.ts";
import type { AnyObject, DelegatedType } from "./delegated-type.ts";
import type { CapacityProvider, ClusterQueue, LocalQueue, ResourceFlavor } from "./kueue.ts";
import type { AdmissionCheck, Workload } from "./kueue-workload.ts";
import type { PlacementDefaults } from "./placement-defaults.ts";

const legation = { group: "legation.dev", version: "v1alpha1", namespaced: false } as const;

export const clusters: Resource<Cluster> = { ...legation, plural: "clusters", kind: "Cluster" };
export const placementDefaults: Resource<PlacementDefaults> = {
  ...legation,
  plural: "placementdefaults",
  kind: "PlacementDefaults",
};
const { version, ...defaults } = placementDefaults;
/** PlacementDefaults where the host may lack them: an earlier version was installed, or their definition was deleted. */
export const optionalDefaults: OptionalResource<PlacementDefaults> = {
  ...defaults,
  versions: [version],
  lookAgainMs: 10_000,
};
export const delegatedTypes: Resource<DelegatedType> = {
  ...legation,
  plural: "delegatedtypes",
  kind: "DelegatedType",
};

const KUEUE = { group: "kueue.x-k8s.io", namespaced: false } as const;

export const resourceFlavors: OptionalResource<ResourceFlavor> = {
  ...KUEUE,
  versions: ["v1beta2", "v1beta1"],
  plural: "resourceflavors",
  kind: "ResourceFlavor",
};
export const clusterQueues: OptionalResource<ClusterQueue> = {
  ...KUEUE,
  versions: ["v1beta2", "v1beta1"],
  plural: "clusterqueues",
  kind: "ClusterQueue",
};
export const localQueues: OptionalResource<LocalQueue> = {
  ...KUEUE,
  namespaced: true,
  versions: ["v1beta2", "v1beta1"],
  plural: "localqueues",
  kind: "LocalQueue",
};
export const workloads: OptionalResource<Workload> = {
  ...KUEUE,
  namespaced: true,
  versions: ["v1beta2", "v1beta1"],
  plural: "workloads",
  kind: "Workload",
};
export const capacityProviders: OptionalResource<CapacityProvider> = {
  ...KUEUE,
  versions: ["v1alpha1"],
  plural: "capacityproviders",
  kind: "CapacityProvider",
};
export const admissionChecks: OptionalResource<AdmissionCheck> = {
  ...KUEUE,
  versions: ["v1beta2", "v1beta1"],
  plural: "admissionchecks",
  kind: "AdmissionCheck",
};

/** Returns the API resource that a type names. */
export function resourceOfType({ spec }: Pick<DelegatedType, "spec">): Resource<AnyObject> {
  const { group = "", version, plural, kind, scope = "Namespaced" } = spec;
  return { group, version, plural, kind, namespaced: scope === "Namespaced" };
}
