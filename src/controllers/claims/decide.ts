import { CLAIM_STATUS_ANNOTATION } from "../../api/keys.ts";
import {
  claimOwner,
  claimProblem,
  claimStatus,
  clusterOf,
  ownerAnnotation,
  toMemberClaim,
  wantedSize,
  wasSeen,
} from "../../copies/claims.ts";
import { ownerOf } from "../../pods/delegate.ts";
import type { Action, Observed } from "./model.ts";

/** Actions for one claim, and when to look again without an event. */
export interface ClaimDecision {
  readonly actions: readonly Action[];
  readonly outcome: string;
  /** Epoch ms. */
  readonly requeueAt?: number;
}

/** Keeps one claim in one member for each claim of the host, and sweeps those of earlier ones. */
export function decide(observed: Observed): ClaimDecision {
  const { claim } = observed;
  const sweeps: Action[] = observed.copies
    // A claim that a restored host has forgotten holds data.
    .filter(({ usable, held, claim: { metadata } }) => usable && !held && metadata.deletionTimestamp === undefined)
    .flatMap(({ member, claim: copy }): Action[] => {
      const ownerUid = ownerOf(copy)?.uid;
      if (ownerUid === undefined || ownerUid === claim?.metadata.uid) return [];
      return [{ type: "sweep", member, uid: copy.metadata.uid, ownerUid }];
    });
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) {
    return { actions: sweeps, outcome: "Removing" };
  }
  const decision = decideHome(claim, observed);
  return { ...decision, actions: [...decision.actions, ...sweeps] };
}

function decideHome(claim: NonNullable<Observed["claim"]>, observed: Observed): ClaimDecision {
  const { host, copies, home, usable, classes, refused, refusedSize, contestedUntil } = observed;
  const { uid, resourceVersion } = claim.metadata;
  if (home === undefined || claimProblem(claim) !== undefined) return { actions: [], outcome: "Idle" };
  const there = copies.find(({ member }) => member === home)?.claim;
  const own = there !== undefined && claimOwner(there, claim) === uid ? there : undefined;
  const assigned = clusterOf(claim) === home;
  if (refused && own === undefined) {
    const free = assigned && !wasSeen(claim);
    return { actions: free ? [{ type: "unassign", uid, resourceVersion }] : [], outcome: "Refused" };
  }
  // Written first: after a crash no other member gets the claim.
  if (!assigned) return { actions: [{ type: "assign", member: home, uid, resourceVersion }], outcome: "Assigning" };
  if (!usable) return { actions: [], outcome: "Unreachable" };
  if (own === undefined) {
    if (there !== undefined) return { actions: [], outcome: "Replacing" };
    // The claim was deleted in the member, with its data: an empty one must not replace it unnoticed.
    if (wasSeen(claim)) {
      return { actions: observed.looked ? [] : [{ type: "look", member: home, claim }], outcome: "Lost" };
    }
    return {
      actions: [{ type: "create", member: home, uid, object: toMemberClaim(claim, host, classes) }],
      outcome: "Making",
    };
  }
  const isUnowned = ownerOf(own) === undefined;
  if (isUnowned && contestedUntil === undefined) {
    const annotations = ownerAnnotation(claim, host);
    return { actions: [{ type: "mark", member: home, uid: own.metadata.uid, annotations }], outcome: "Marking" };
  }
  const size = wantedSize(claim, own);
  // The status is written once the outcome is known.
  if (size !== undefined && refusedSize === undefined) {
    return { actions: [{ type: "grow", member: home, uid: own.metadata.uid, size }], outcome: "Growing" };
  }
  const status = claimStatus(own, refusedSize);
  const told = claim.metadata.annotations?.[CLAIM_STATUS_ANNOTATION] === status;
  return {
    actions: told ? [] : [{ type: "tell", uid, status }],
    outcome: "InStep",
    ...(isUnowned && contestedUntil !== undefined ? { requeueAt: contestedUntil } : {}),
  };
}
