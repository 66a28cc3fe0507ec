import { jsonEqual } from "../../../api/json.ts";
import { type MemberRecord, membersContent, nextMembers, type ObjectMember } from "../../../copies/object-members.ts";
import { hasWholeFinalizer, isWantedInMembers } from "../../../copies/objects.ts";
import { heldUntil } from "../../../runtime/held-writes.ts";
import { lookAgain } from "../../../runtime/requeue.ts";
import { LOOK_AGAIN_MS, MEMBERS, type WholePhase } from "../model.ts";
import { decideBy, releaseObject, reportToAuthor, retire, show } from "../phases.ts";
import type { ObjectDecision, Observed } from "./model.ts";

// Controllers of a member may write a status many times a second.
const OBJECT_STATUS_PAUSE_MS = 1_000;
// Members change one after the other, and one write tells of them all.
const MEMBERS_PAUSE_MS = 1_000;
// A member that is about to take the object has its next state soon. In a burst of objects, copies come before records.
const LONGEST_MEMBERS_PAUSE_MS = 10_000;

const PHASES: readonly WholePhase<Observed, ObjectDecision>[] = [
  retire,
  end,
  refuse,
  requeue,
  place,
  hold,
  recordMembers,
  tell,
  follow,
  rest,
];

/** The first phase that answers decides. */
export const decide: (observed: Observed, now: number, wall: number) => ObjectDecision = decideBy(PHASES);

/** Waits until each member, read after the last create, has no copy. A lost member loses its copy when it is back. */
function end(observed: Observed, now: number, wall: number): ObjectDecision | undefined {
  const { object } = observed;
  if (isWantedInMembers(object)) return undefined;
  const places = observed.places.filter(({ isLost }) => !isLost);
  if (places.some(({ hasCopy, isUsable }) => hasCopy && isUsable)) {
    // An end that no member refuses costs no record.
    if (places.every(({ deletionRefusal }) => deletionRefusal === undefined)) {
      return { actions: [], outcome: "Removing" };
    }
    const requeue = lookAgain(membersDueAt(observed, now));
    return recordMembers(observed, now, wall) ?? { actions: [], outcome: "DeletionRefused", ...requeue };
  }
  const asked = places.filter(({ isClosed }) => isClosed !== true).map(({ member }) => member);
  return releaseObject(observed, { places, asked }, now);
}

/** Tells the author why nothing is done: the namespace is not opted in, for example, and then not touched. */
function refuse({ object, problem }: Observed): ObjectDecision | undefined {
  return problem === undefined ? undefined : reportToAuthor(object, { message: problem, outcome: "Refused" });
}

/** Takes the member from an object whose new flavor is another member's. The copier deletes the copy, which nothing starts any more. */
function requeue({ object, isMisplaced }: Observed): ObjectDecision | undefined {
  if (!isMisplaced) return undefined;
  return { actions: [{ type: "record", object, assignment: undefined }], outcome: "Requeueing" };
}

/** Records the one member of an object that runs something. */
function place({ object, choice, isQueued }: Observed, now: number): ObjectDecision | undefined {
  if (choice === undefined) return undefined;
  if (isQueued) return { actions: [], outcome: "Queued" };
  const [member] = choice.fitting;
  if (member === undefined)
    return reportToAuthor(object, { message: choice.why, outcome: "NotPlaced" }, now + LOOK_AGAIN_MS);
  return { actions: [{ type: "record", object, assignment: member }], outcome: "Placing" };
}

function hold({ object }: Observed): ObjectDecision | undefined {
  return hasWholeFinalizer(object) ? undefined : { actions: [{ type: "hold", object }], outcome: "Holding" };
}

/** Writes each member's state to the object. */
function recordMembers(observed: Observed, now: number, wall: number): ObjectDecision | undefined {
  const dueAt = membersDueAt(observed, now);
  if (dueAt === undefined || now < dueAt) return undefined;
  const { object, places } = observed;
  const members = nextMembers(object, places, new Date(wall).toISOString());
  return members && { actions: [{ type: "members", object, members }], outcome: "Recording" };
}

/** Returns when the members' record is to be written; epoch ms. Undefined if the object has it. */
function membersDueAt({ staleMembers, places, held, isBusy = false }: Observed, now: number): number | undefined {
  if (staleMembers === undefined) return undefined;
  const { members, since } = staleMembers;
  const until = held && heldUntil(held, { write: MEMBERS, content: membersContent(members), now });
  if (until !== undefined) return until;
  const soonestAt = since + MEMBERS_PAUSE_MS;
  const failing = new Set(places.filter((place) => place.failing !== undefined).map(({ member }) => member));
  const isUnderWay = (record: MemberRecord): boolean => isNewlyWaiting(record) && !failing.has(record.member);
  const waits = members.some(isUnderWay) || (isBusy && now >= soonestAt);
  return waits ? since + LONGEST_MEMBERS_PAUSE_MS : soonestAt;
}

/** Reports whether the member's copy is to be created or changed, and the object's record does not say so yet. */
function isNewlyWaiting({ state, since }: MemberRecord): boolean {
  return state === "Waiting" && since === "";
}

/** Tells the author why no member gets the object. */
function tell(observed: Observed, now: number): ObjectDecision | undefined {
  const { object, places } = observed;
  const excluded = places.filter((place) => place.excluded !== undefined);
  if (excluded.length < places.length) return undefined;
  const message = excluded.map(wordsOf).join("; ") || "this cluster has no members";
  return reportToAuthor(object, { message, outcome: "NotPlaced" }, membersDueAt(observed, now));
}

/** Tells where overrides do not fit, and writes the copies' status to the object. */
function follow(observed: Observed, now: number): ObjectDecision | undefined {
  const { object, places } = observed;
  const misfits = places.flatMap(({ member, misfit }) => (misfit === undefined ? [] : [`${member}: ${misfit}`]));
  const decision = followStatus(observed, now);
  if (misfits.length === 0) return decision;
  const reported = reportToAuthor(
    object,
    { message: misfits.join("; "), outcome: "Misfit" },
    membersDueAt(observed, now),
  );
  return decision === undefined ? reported : { ...decision, actions: [...reported.actions, ...decision.actions] };
}

function followStatus(observed: Observed, now: number): ObjectDecision | undefined {
  const { object, places, status, sent } = observed;
  // A new leader has not read all members yet. One that does not answer any more keeps the status that it had.
  if (places.some(({ excluded, isKnown }) => excluded === undefined && !isKnown)) return undefined;
  if (status === undefined || jsonEqual(status, object.status)) return undefined;
  const dueAt = (sent?.at ?? 0) + OBJECT_STATUS_PAUSE_MS;
  const decision = show(observed, { shown: status, dueAt }, now);
  if (decision.actions.length > 0) return decision;
  return { ...decision, ...lookAgain(decision.requeueAt, membersDueAt(observed, now)) };
}

/** Looks again when the members' record is to be written. */
function rest(observed: Observed, now: number): ObjectDecision {
  return { actions: [], outcome: "InStep", ...lookAgain(membersDueAt(observed, now)) };
}

function wordsOf({ member, excluded = "" }: ObjectMember): string {
  return `${member}: ${excluded}`;
}
