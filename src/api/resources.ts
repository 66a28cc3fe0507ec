import type { OptionalResource, Resource } from "../kube/resources.ts";
import type { Cluster } from "./cluster.ts";
import type { AnyObject, DelegatedType } from "./delegated-type.ts";
import type { AdmissionCheck, Workload, WorkloadFlavor } from "./kueue-workload.ts";
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

const kueue = { group: "kueue.x-k8s.io", versions: ["v1beta2"] } as const;

export const admissionChecks: OptionalResource<AdmissionCheck> = {
  ...kueue,
  namespaced: false,
  plural: "admissionchecks",
  kind: "AdmissionCheck",
};
export const workloads: OptionalResource<Workload> = {
  ...kueue,
  namespaced: true,
  plural: "workloads",
  kind: "Workload",
};
export const workloadFlavors: OptionalResource<WorkloadFlavor> = {
  ...kueue,
  namespaced: false,
  plural: "resourceflavors",
  kind: "ResourceFlavor",
};

/** Returns the API resource that a type names. */
export function resourceOfType({ spec }: Pick<DelegatedType, "spec">): Resource<AnyObject> {
  const { group = "", version, plural, kind, scope = "Namespaced" } = spec;
  return { group, version, plural, kind, namespaced: scope === "Namespaced" };
}
