import type { Candidate } from "../../placement/candidate.ts";

/** A member, as far as placement is concerned. */
export interface PlacementMember {
  readonly name: string;
  /** Its delegates are known. */
  readonly read: boolean;
  /** They have still to be read, and nothing says that they cannot be. */
  readonly settling: boolean;
  /** Changes with everything that may let it take a pod that it has refused. */
  readonly roomVersion: string;
  candidate(): Candidate;
}

/** All members: those that the controller is connected to, or those of a simulation. */
export interface PlacementMembers {
  members(): readonly PlacementMember[];
  member(name: string): PlacementMember | undefined;
  /** Clusters that cannot be reached for want of credentials: pods may be there all the same. */
  unconnected(): readonly { readonly metadata: { readonly name: string } }[];
}
