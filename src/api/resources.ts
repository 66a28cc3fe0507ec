import type { Resource } from "../kube/resources.ts";
import type { Cluster } from "./cluster.ts";
import type { PlacementDefaults } from "./placement-defaults.ts";

const legation = { group: "legation.dev", version: "v1alpha1", namespaced: false } as const;

export const clusters: Resource<Cluster> = { ...legation, plural: "clusters", kind: "Cluster" };
export const placementDefaults: Resource<PlacementDefaults> = {
  ...legation,
  plural: "placementdefaults",
  kind: "PlacementDefaults",
};
