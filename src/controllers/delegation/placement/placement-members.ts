import type { Load } from "../../../clusters/load.ts";
import type { Candidate } from "../../../placement/candidate.ts";

/** A member, as far as placement is concerned. */
export interface PlacementMember {
  readonly name: string;
  /** Its delegates are known. */
  readonly read: boolean;
  /** They have still to be read, and nothing says that they cannot be. */
  readonly settling: boolean;
  /** Changes with everything that may let it take a pod that it has refused. */
  readonly roomVersion: string;
  /** Where room is kept for pods that are about to come. */
  readonly load: Pick<Load, "reserve" | "release">;
  candidate(): Candidate;
}

/** All members: those that the controller is connected to, or those of a simulation. */
export interface PlacementMembers {
  members(): readonly PlacementMember[];
  member(name: string): PlacementMember | undefined;
  /** Clusters that cannot be reached for want of credentials: pods may be there all the same. */
  unconnected(): readonly { readonly metadata: { readonly name: string } }[];
}
