import type { AnyObject } from "../../../api/delegated-type.ts";
import { OVERRIDES_ANNOTATION, PREFERENCES_ANNOTATION } from "../../../api/keys.ts";
import type { Stored } from "../../../api/kubernetes.ts";
import { recordedMember } from "../../../copies/objects.ts";
import { isHeldBack, podsOfTemplates, type QueuedObjects } from "../../../copies/queued-objects.ts";
import type { WholeInMember, WholeWork } from "../../../whole/type.ts";

/** Overrides of an object are none of its pods. One that was taken back before it began may get another member. */
export function workOfObject(
  object: Stored<AnyObject>,
  { type, expressions }: Pick<QueuedObjects, "type" | "expressions">,
): WholeWork {
  const { uid, annotations: written = {} } = object.metadata;
  const { [OVERRIDES_ANNOTATION]: _, [PREFERENCES_ANNOTATION]: __, ...annotations } = written;
  const member = recordedMember(object);
  const isBack = isHeldBack(object, type);
  const keeps = member !== undefined && (!isBack || expressions.hasBegun(object));
  const live = keeps && !isBack ? Number.POSITIVE_INFINITY : 0;
  return { uid, annotations, members: keeps ? [member] : [], isDivided: false, live, succeeded: 0 };
}

// All are asked for every second, and objects in stores never change.
const known = new WeakMap<Stored<AnyObject>, WholeInMember>();

export function objectsInMember(
  cluster: string,
  { type, expressions, objects }: QueuedObjects,
): readonly WholeInMember[] {
  return objects.flatMap((object) => {
    if (recordedMember(object) !== cluster) return [];
    const found = known.get(object) ?? objectInMember(object, { type, expressions });
    known.set(object, found);
    return [found];
  });
}

function objectInMember(
  object: Stored<AnyObject>,
  { type, expressions }: Pick<QueuedObjects, "type" | "expressions">,
): WholeInMember {
  const counts = expressions.podCounts(object);
  const pods = podsOfTemplates(object, type).map((pod, index) => ({ pod, count: counts[index] ?? 0 }));
  return { pods, owner: object.metadata.uid };
}
