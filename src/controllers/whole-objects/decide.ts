import { jsonEqual } from "../../api/json.ts";
import { WHOLE_FINALIZER } from "../../api/keys.ts";
import { statusFrom } from "../../copies/object-status.ts";
import { hasWholeLabel, isWanted } from "../../copies/objects.ts";
import { heldUntil } from "../../runtime/held-writes.ts";
import { type ObjectDecision, type Observed, type Place, STATUS } from "./model.ts";

// Controllers of a member may write a status many times a second.
const STATUS_PAUSE_MS = 1_000;
// Room in members changes all the time.
const LOOK_AGAIN_MS = 30_000;

/** Decides in this order; the first answer wins. */
const PHASES = [retire, end, place, hold, tell, follow] as const;

export function decide(observed: Observed, now: number): ObjectDecision {
  for (const phase of PHASES) {
    const decision = phase(observed, now);
    if (decision !== undefined) return decision;
  }
  return { actions: [], outcome: "InStep" };
}

/** Releases the object of a DelegatedType that is being deleted. Its copies stay as they are. */
function retire({ object, isRetired }: Observed): ObjectDecision | undefined {
  if (!isRetired) return undefined;
  const actions = isHeld(object) || hasWholeLabel(object) ? [{ type: "release", object, members: [] } as const] : [];
  return { actions, outcome: "Retired" };
}

/** Waits until no member that answers has a copy. One that does not answer loses its copy when it is back. */
function end({ object, places }: Observed): ObjectDecision | undefined {
  if (isWanted(object)) return undefined;
  if (places.some(({ copy, isUsable }) => copy !== undefined && isUsable)) return { actions: [], outcome: "Removing" };
  const members = places.filter(({ isUsable }) => isUsable).map(({ member }) => member);
  return { actions: [{ type: "release", object, members }], outcome: "Releasing" };
}

/** Records the one member of an object that runs there. */
function place({ object, problem, choice }: Observed, now: number): ObjectDecision | undefined {
  if (choice === undefined || problem !== undefined) return undefined;
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

/** Tells the author why no member gets the object. */
function tell({ object, problem, places }: Observed): ObjectDecision | undefined {
  const excluded = places.filter((place) => place.excluded !== undefined);
  if (problem === undefined && excluded.length < places.length) return undefined;
  const message = problem ?? (excluded.map(wordsOf).join("; ") || "this cluster has no members");
  return { actions: [{ type: "report", object, message }], outcome: "NotPlaced" };
}

/** Writes the copies' status to the object. */
function follow({ object, places, sum, statusSentAt, held }: Observed, now: number): ObjectDecision | undefined {
  const wanted = places.filter(({ excluded }) => excluded === undefined);
  // A member that does not answer keeps the status that it had.
  if (wanted.some(({ isUsable }) => !isUsable)) return undefined;
  const status = statusFrom(object, wanted, sum);
  if (status === undefined || jsonEqual(status, object.status)) return undefined;
  const until = held && heldUntil(held, { write: STATUS, content: JSON.stringify(status), now });
  if (until !== undefined) return { actions: [], outcome: "StatusHeld", requeueAt: until };
  const dueAt = (statusSentAt ?? 0) + STATUS_PAUSE_MS;
  if (now < dueAt) return { actions: [], outcome: "Coalescing", requeueAt: dueAt };
  return { actions: [{ type: "status", object, status }], outcome: "Following" };
}

function isHeld({ metadata: { finalizers = [] } }: Observed["object"]): boolean {
  return finalizers.includes(WHOLE_FINALIZER);
}

function wordsOf({ member, excluded = "" }: Place): string {
  return `${member}: ${excluded}`;
}
