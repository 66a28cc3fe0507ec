import type { DelegatedType } from "../../../src/api/delegated-type.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";

/** Pods name a PodGroup by a label, and run in one member with all others that do. */
export const podGroupType: Stored<DelegatedType> = {
  metadata: { name: "podgroups.scheduling.x-k8s.io", uid: "t1", resourceVersion: "1" },
  spec: {
    group: "scheduling.x-k8s.io",
    version: "v1alpha1",
    kind: "PodGroup",
    plural: "podgroups",
    follows: { names: [{ label: "scheduling.x-k8s.io/pod-group" }], confines: true },
  },
};
