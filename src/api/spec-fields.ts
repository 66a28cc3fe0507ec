import type { PodSpec } from "./kubernetes.ts";

/** A field that a pod's spec may lack. */
type OptionalField = Exclude<keyof PodSpec, "containers">;

/**
 * Fields of a pod's spec that a delegate has not from its proxy, and that no override may set: the host's admission filled
 * them in, or only the member may decide them.
 */
export const FIELDS_NOT_DELEGATED: readonly OptionalField[] = [
  "nodeName",
  "schedulerName",
  "schedulingGates",
  // Resolved by the Priority and RuntimeClass admission plugins from the class names, which stay.
  "priority",
  "preemptionPolicy",
  "overhead",
  // Deprecated alias of serviceAccountName, filled in by defaulting.
  "serviceAccount",
  // Refused by the API server at creation; forwarded afterwards.
  "ephemeralContainers",
];
