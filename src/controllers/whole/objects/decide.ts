import { jsonEqual } from "../../../api/json.ts";
import { type MemberRecord, membersContent, nextMembers, type Place } from "../../../copies/object-members.ts";
import { isHeld, isWanted } from "../../../copies/objects.ts";
import { heldUntil } from "../../../runtime/held-writes.ts";
import { lookAgain } from "../../../runtime/requeue.ts";
import { MEMBERS, type ObjectDecision, type Observed, STATUS } from "./model.ts";

// Controllers of a member may write a status many times a second.
const STATUS_PAUSE_MS = 1_000;
// Room in members changes all the time.
const LOOK_AGAIN_MS = 30_000;
// Members change one after the other, and one write tells of them all.
const MEMBERS_PAUSE_MS = 1_000;
// A member that is about to take the object has its next state soon. In a burst of objects, copies come before records.
const LONGEST_MEMBERS_PAUSE_MS = 10_000;

/** Decides in this order; the first answer wins. */
const PHASES = [retire, end, refuse, place, hold, recordMembers, tell, follow] as const;

export function decide(observed: Observed, now: number, wall: number): ObjectDecision {
  for (const phase of PHASES) {
    const decision = phase(observed, now, wall);
    if (decision !== undefined) return decision;
  }
  return { actions: [], outcome: "InStep", ...lookAgain(membersDueAt(observed, now)) };
}

/** Releases the object of a DelegatedType that is being deleted. Its copies stay as they are. */
function retire({ object, isRetired }: Observed): ObjectDecision | undefined {
  if (!isRetired) return undefined;
  const actions = isHeld(object) ? [{ type: "release", object, members: [], keepsLabel: true } as const] : [];
  return { actions, outcome: "Retired" };
}

/**
 * Waits until no member has a copy, by a read of each after the last request that may create one. A lost member is not waited
 * for: it loses its copy when it is back.
 */
function end(observed: Observed, now: number, wall: number): ObjectDecision | undefined {
  const { object } = observed;
  if (isWanted(object)) return undefined;
  const places = observed.places.filter(({ isLost }) => isLost !== true);
  if (places.some(({ hasCopy, isUsable }) => hasCopy && isUsable)) {
    // An end that no member refuses costs no record.
    if (places.every(({ deletionRefusal }) => deletionRefusal === undefined)) {
      return { actions: [], outcome: "Removing" };
    }
    const requeue = lookAgain(membersDueAt(observed, now));
    return recordMembers(observed, now, wall) ?? { actions: [], outcome: "DeletionRefused", ...requeue };
  }
  const settlesAt = Math.max(...places.map((place) => place.settlesAt ?? now));
  if (now < settlesAt) return { actions: [], outcome: "Settling", requeueAt: settlesAt };
  const members = places.filter(({ isClosed }) => isClosed !== true).map(({ member }) => member);
  // A member that still has a copy is an event, unless it was already known to.
  return { actions: [{ type: "release", object, members }], outcome: "Releasing", requeueAt: now + LOOK_AGAIN_MS };
}

/** Tells the author why nothing is done: the namespace is not opted in, for example, and then not touched. */
function refuse({ object, problem }: Observed): ObjectDecision | undefined {
  if (problem === undefined) return undefined;
  return { actions: [{ type: "report", object, message: problem }], outcome: "Refused" };
}

/** Records the one member of an object that runs there. */
function place({ object, choice }: Observed, now: number): ObjectDecision | undefined {
  if (choice === undefined) return undefined;
  const [member] = choice.fitting;
  if (member !== undefined) return { actions: [{ type: "record", object, member }], outcome: "Placing" };
  return {
    actions: [{ type: "report", object, message: choice.why }],
    outcome: "NotPlaced",
    requeueAt: now + LOOK_AGAIN_MS,
  };
}

function hold({ object }: Observed): ObjectDecision | undefined {
  return isHeld(object) ? undefined : { actions: [{ type: "hold", object }], outcome: "Holding" };
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
  const actions = [{ type: "report", object, message }] as const;
  return { actions, outcome: "NotPlaced", ...lookAgain(membersDueAt(observed, now)) };
}

/** Tells where overrides do not fit, and writes the copies' status to the object. */
function follow(observed: Observed, now: number): ObjectDecision | undefined {
  const { object, places } = observed;
  const misfits = places.flatMap(({ member, misfit }) => (misfit === undefined ? [] : [`${member}: ${misfit}`]));
  const decision = followStatus(observed, now);
  if (misfits.length === 0) return decision;
  const report = { type: "report", object, message: misfits.join("; ") } as const;
  const { actions, ...rest } = decision ?? {
    actions: [],
    outcome: "Misfit",
    ...lookAgain(membersDueAt(observed, now)),
  };
  return { ...rest, actions: [report, ...actions] };
}

function followStatus(observed: Observed, now: number): ObjectDecision | undefined {
  const { object, places, status, statusSentAt, held } = observed;
  // A new leader has not read all members yet. One that does not answer any more keeps the status that it had.
  if (places.some(({ excluded, isKnown }) => excluded === undefined && !isKnown)) return undefined;
  if (status === undefined || jsonEqual(status, object.status)) return undefined;
  const until = held && heldUntil(held, { write: STATUS, content: JSON.stringify(status), now });
  if (until !== undefined)
    return { actions: [], outcome: "StatusHeld", ...lookAgain(until, membersDueAt(observed, now)) };
  const dueAt = (statusSentAt ?? 0) + STATUS_PAUSE_MS;
  if (now < dueAt) return { actions: [], outcome: "Coalescing", ...lookAgain(dueAt, membersDueAt(observed, now)) };
  return { actions: [{ type: "status", object, status }], outcome: "Following" };
}

function wordsOf({ member, excluded = "" }: Place): string {
  return `${member}: ${excluded}`;
}
