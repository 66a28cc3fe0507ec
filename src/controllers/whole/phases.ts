import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ObjectMember } from "../../copies/object-members.ts";
import { hasWholeFinalizer } from "../../copies/objects.ts";
import { heldUntil } from "../../runtime/held-writes.ts";
import { lookAgain } from "../../runtime/requeue.ts";
import {
  LOOK_AGAIN_MS,
  type Observed,
  type SharedDecision,
  STATUS,
  type WholeDecision,
  type WholePhase,
} from "./model.ts";

type Settling = Pick<ObjectMember, "settlesAt">;

/** Decides in the order of the phases; the first answer wins. */
export function decideBy<O, T extends KubeObject, Assignment, Shown>(
  phases: readonly WholePhase<O, WholeDecision<T, Assignment, Shown>>[],
): (observed: O, now: number, wall: number) => WholeDecision<T, Assignment, Shown> {
  return (observed, now, wall) => {
    for (const phase of phases) {
      const decision = phase(observed, now, wall);
      if (decision !== undefined) return decision;
    }
    return { actions: [], outcome: "InStep" };
  };
}

/** Releases the object of a DelegatedType that is being deleted. Its copies stay as they are. */
export function retire<T extends KubeObject>(observed: Observed<T, unknown>): SharedDecision<T> | undefined {
  const { object, isRetired } = observed;
  if (isRetired !== true) return undefined;
  const actions = hasWholeFinalizer(object)
    ? [{ type: "release", object, members: [], keepsLabel: true } as const]
    : [];
  return { actions, outcome: "Retired" };
}

/** Lets an object go that no member has as far as is known: each of `asked` is read once no request can create a copy. */
export function releaseObject<T extends KubeObject>(
  { object }: Observed<T, unknown>,
  { places, asked }: { readonly places: readonly Settling[]; readonly asked: readonly string[] },
  now: number,
): SharedDecision<T> {
  const settlesAt = settlingUntil(places, now);
  if (settlesAt !== undefined) return { actions: [], outcome: "Settling", requeueAt: settlesAt };
  // A member that still has a copy is an event, unless it was already known to.
  const requeueAt = now + LOOK_AGAIN_MS;
  return { actions: [{ type: "release", object, members: asked }], outcome: "Releasing", requeueAt };
}

/** Returns when no request can create a copy in these members any more; epoch ms. Undefined if none can now. */
export function settlingUntil(places: readonly Settling[], now: number): number | undefined {
  const until = Math.max(...places.map(({ settlesAt = now }) => settlesAt));
  return now < until ? until : undefined;
}

/** Tells the author why nothing is done. */
export function reportToAuthor<T extends KubeObject>(
  object: Stored<T>,
  { message, outcome }: { readonly message: string; readonly outcome: string },
  requeueAt?: number,
): SharedDecision<T> {
  return { actions: [{ type: "report", object, message }], outcome, ...lookAgain(requeueAt) };
}

/** Writes what is shown of the copies, unless the host refuses it, or the last write was a moment ago. */
export function show<T extends KubeObject, Shown>(
  { object, held }: Observed<T, Shown>,
  { shown, dueAt }: { readonly shown: Shown; readonly dueAt: number },
  now: number,
): WholeDecision<T, never, Shown> {
  const until = held && heldUntil(held, { write: STATUS, content: JSON.stringify(shown), now });
  if (until !== undefined) return { actions: [], outcome: "StatusHeld", requeueAt: until };
  if (now < dueAt) return { actions: [], outcome: "Coalescing", requeueAt: dueAt };
  return { actions: [{ type: "status", object, shown }], outcome: "Following" };
}
