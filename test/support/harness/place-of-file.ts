import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The clusters that a file's tests run on. */
export type Place =
  /** A set of shared clusters with simulated nodes. */
  | "simulated"
  /** A set of shared clusters with real nodes. */
  | "real"
  /** A set with simulated nodes that none but such files use: they take Legation out of it. */
  | "pristine"
  /** A set with simulated nodes that is started for the file: a long one, which another lane has time for. */
  | "separate"
  /** Clusters that the file starts, for want of something in the shared ones. */
  | "own"
  /** The same, with real nodes. */
  | "own-real";

/** A place whose clusters are shared. */
export type SharedPlace = "simulated" | "real" | "pristine";

/** Returns the place if its clusters are shared. */
export function sharedPlace(place: Place): SharedPlace | undefined {
  return place === "simulated" || place === "real" || place === "pristine" ? place : undefined;
}

/** The turn with which a file that needs an unused set gets one. */
export const UNUSED_TURN = "simulated-0";

// The number of files that run at once: two cores allow no more. Files on real nodes mostly wait.
const SIMULATED: readonly string[] = [UNUSED_TURN, "simulated-1"];
const REAL: readonly string[] = ["real"];
const OWN: readonly string[] = ["own"];
// Long enough to be worth the start of three clusters.
const SEPARATE: readonly string[] = ["access", "crash", "drain", "faults"].map(
  (name) => `/test/integration/${name}.test.ts`,
);

/** The turns that a file may take, each of which is one file's at a time. Each shared set has its own turn, in this order. */
export const TURNS: Readonly<Record<Place, readonly string[]>> = {
  simulated: SIMULATED,
  real: REAL,
  pristine: OWN,
  separate: [...OWN, ...REAL],
  own: OWN,
  "own-real": REAL,
};

/** The lock of a turn, in the folder of all of them. */
export function turnFile(turns: string, name: string): string {
  return join(turns, `${name}.turn`);
}

/** Reports whether the file's pods run on real nodes. */
export function isOnRealNodes(path: string): boolean {
  return path.includes("/real-nodes/");
}

/** Reports whether the file uninstalls Legation from its clusters. */
export function needsPristine(path: string): boolean {
  return readFileSync(path, "utf8").includes("/harness/pristine.ts");
}

/** The clusters on which a test file runs. */
export function placeOf(path: string): Place {
  if (path.includes("/own-clusters/")) return isOnRealNodes(path) ? "own-real" : "own";
  if (isOnRealNodes(path)) return "real";
  if (SEPARATE.some((end) => path.endsWith(end))) return "separate";
  return needsPristine(path) ? "pristine" : "simulated";
}

/** Reports whether the file ranks members by load, and so must wait until earlier pods are gone. */
export function needsUnused(path: string): boolean {
  return path.endsWith("/test/integration/deployment.test.ts");
}
