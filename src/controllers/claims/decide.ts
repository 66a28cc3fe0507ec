import { CLAIM_STATUS_ANNOTATION } from "../../api/keys.ts";
import {
  claimOwner,
  claimProblem,
  claimStatus,
  clusterOf,
  labelsOfTools,
  ownerAnnotation,
  toMemberClaim,
  wantedSize,
  wasSeen,
} from "../../copies/claims.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { heldUntil, heldWrite } from "../../runtime/held-writes.ts";
import { type Decision, lookAgain } from "../../runtime/requeue.ts";
import { type Action, CLAIM_MARKS, claimCreationIn, type Observed, SIZE, sizeContent } from "./model.ts";

/** Keeps one claim in one member for each claim of the host. */
export function decide(observed: Observed, now: number): Decision<Action> {
  const { claim, heldWrites = {} } = observed;
  const reconsidered = Object.entries(heldWrites)
    // A size is asked for again without it: no pod waits for that.
    .filter(([write, { refusal, until }]) => write !== SIZE && refusal !== undefined && until <= now)
    .map(([write]): Action => ({ type: "reconsider", write }));
  const later = Object.values(heldWrites).flatMap(({ until }) => (until > now ? until : []));
  const requeue = lookAgain(...later);
  const sweeps: Action[] = observed.copies
    // A claim that a restored host has forgotten holds data.
    .filter(({ usable, held, claim: { metadata } }) => usable && !held && metadata.deletionTimestamp === undefined)
    .flatMap(({ member, claim: copy }): Action[] => {
      const ownerUid = ownerOf(copy)?.uid;
      if (ownerUid === undefined || ownerUid === claim?.metadata.uid) return [];
      return [
        { type: "sweep", member, uid: copy.metadata.uid, resourceVersion: copy.metadata.resourceVersion, ownerUid },
      ];
    });
  if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) {
    return { actions: [...reconsidered, ...sweeps], outcome: "Removing", ...requeue };
  }
  const { actions, outcome } = decideHome(claim, observed, now);
  return { actions: [...reconsidered, ...actions, ...sweeps], outcome, ...requeue };
}

function decideHome(
  claim: NonNullable<Observed["claim"]>,
  { host, copies, home, usable, classes, heldWrites }: Observed,
  now: number,
): Pick<Decision<Action>, "actions" | "outcome"> {
  const { uid, resourceVersion } = claim.metadata;
  if (home === undefined || claimProblem(claim) !== undefined) return { actions: [], outcome: "Idle" };
  const there = copies.find(({ member }) => member === home)?.claim;
  const own = there !== undefined && claimOwner(there, claim) === uid ? there : undefined;
  const assigned = clusterOf(claim) === home;
  if (own === undefined && heldUntil(heldWrites, { write: claimCreationIn(home), content: uid, now }) !== undefined) {
    if (wasSeen(claim)) return { actions: [], outcome: "Lost" };
    return { actions: assigned ? [{ type: "unassign", uid, resourceVersion }] : [], outcome: "Refused" };
  }
  // Written first: after a crash no other member gets the claim.
  if (!assigned) return { actions: [{ type: "assign", member: home, uid, resourceVersion }], outcome: "Assigning" };
  if (!usable) return { actions: [], outcome: "Unreachable" };
  if (own === undefined) {
    if (there !== undefined) return { actions: [], outcome: "Replacing" };
    // The claim was deleted in the member, with its data: an empty one must not replace it unnoticed.
    if (wasSeen(claim)) return { actions: [{ type: "confirmLost", member: home, claim }], outcome: "Lost" };
    return {
      actions: [{ type: "create", member: home, uid, object: toMemberClaim(claim, host, classes) }],
      outcome: "Making",
    };
  }
  const mayMark = heldUntil(heldWrites, { write: CLAIM_MARKS, content: own.metadata.uid, now }) === undefined;
  const labels = labelsOfTools(own, claim);
  const hasLabels = Object.keys(labels).length > 0;
  if ((ownerOf(own) === undefined || hasLabels) && mayMark) {
    const marks = { annotations: ownerAnnotation(claim, host), ...(hasLabels ? { labels } : {}) };
    return { actions: [{ type: "mark", member: home, uid: own.metadata.uid, ...marks }], outcome: "Marking" };
  }
  const size = wantedSize(claim, own);
  // The status is written once the outcome is known.
  const refusedSize = size === undefined ? undefined : refusalOf(heldWrites, sizeContent(own.metadata.uid, size), now);
  if (size !== undefined && refusedSize === undefined) {
    return { actions: [{ type: "grow", member: home, uid: own.metadata.uid, size }], outcome: "Growing" };
  }
  const status = claimStatus(own, refusedSize);
  const told = claim.metadata.annotations?.[CLAIM_STATUS_ANNOTATION] === status;
  return { actions: told ? [] : [{ type: "tell", uid, status }], outcome: "InStep" };
}

function refusalOf(heldWrites: Observed["heldWrites"], content: string, now: number): string | undefined {
  if (heldUntil(heldWrites, { write: SIZE, content, now }) === undefined) return undefined;
  return heldWrite(heldWrites, SIZE)?.refusal?.why.message;
}
