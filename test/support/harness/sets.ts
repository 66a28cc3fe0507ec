import type { StartOptions } from "../clusters/types.ts";
import type { SharedPlace } from "./place-of-file.ts";

// The host's own two nodes must never get a delegated pod. Of `hostnameOverride`, east knows nothing, as an older cluster.
const SIMULATED = {
  names: ["host", "west", "east"],
  clusters: { host: { nodes: [{ count: 2 }] }, east: { apiServerFlags: ["--feature-gates=HostnameOverride=false"] } },
};
// The host runs nothing itself; the plain cluster shows what a pod does without Legation.
const REAL = {
  names: ["host", "west", "plain"],
  clusters: { host: { nodes: [] }, west: { realNode: true }, plain: { realNode: true } },
};
/** Clusters of each kind of set. */
export const SETS: Readonly<Record<SharedPlace | "separate", StartOptions>> = {
  simulated: SIMULATED,
  real: REAL,
  pristine: SIMULATED,
  separate: SIMULATED,
};
