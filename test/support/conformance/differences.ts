import type { KnownDifference } from "./scenario.ts";

/** Everything that a person can tell Legation from a plain cluster by in the scenarios; docs/conformance.md says why. */
export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  {
    id: "marks-of-a-proxy",
    plain: /^Annotations: +<none>$/,
    legation: /legation\.dev\/|^ +finalizers:$|: dropped, as left over from another object$/,
  },
  { id: "scheduler-name", plain: /schedulerName: default-scheduler/, legation: /schedulerName: legation/ },
  { id: "not-placed", plain: /^PodScheduled False Unschedulable 1;$/, legation: /^PodScheduled False NotPlaced 1;$/ },
  { id: "missing-objects", plain: /CreateContainerConfigError/, legation: /^web +0\/1 +Pending/ },
];
