import { inject } from "vitest";
import { clustersOf } from "../clusters/control.ts";
import type { Cluster } from "../clusters/types.ts";
// Brings the type of what global setup provides.
import type {} from "./global-setup.ts";

/** The host cluster of this run; whoever breaks it in a test mends it in the same test. */
export function hostCluster(): Cluster {
  return clustersOf(inject("clusters")).get("host");
}

/** A member cluster of this run. */
export function memberCluster(name: "west" | "east"): Cluster {
  return clustersOf(inject("clusters")).get(name);
}
