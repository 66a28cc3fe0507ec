import type { AnyObject } from "../../api/delegated-type.ts";
import { OVERRIDES_ANNOTATION, PREFERENCES_ANNOTATION } from "../../api/keys.ts";
import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import { membersOfJob } from "../../copies/job-shares.ts";
import { isFinished } from "../../copies/jobs.ts";
import { recordedMember } from "../../copies/objects.ts";
import { isHeldBack, podsOfTemplates, type QueuedObjects } from "../../copies/queued-objects.ts";
import { asksForShares } from "../../scheduling/whole/job-choice.ts";

type Annotations = Readonly<Record<string, string>>;

/** A Job or object that goes to members whole, as the admission check judges its pods. */
export interface WholeWork {
  readonly uid: string;
  readonly annotations: Annotations;
  /** The members that have it, whatever its flavors say. */
  readonly members: readonly string[];
  /** Several members may get its pods. */
  readonly isDivided: boolean;
  /** Pods of each pod set that members have: others' use when they were last counted. */
  readonly live: number;
  readonly succeeded: number;
}

/** A Job or object that goes to members whole, as it is in the member that has it. */
export interface WholeInMember {
  readonly pods: readonly { readonly pod: Pod; readonly count: number }[];
  /** The uid by which the member's pods are known as its own. Absent: it has none. */
  readonly uid?: string;
}

export function workOfJob(job: Stored<Job>): WholeWork {
  const members = membersOfJob(job);
  const { uid, annotations = {} } = job.metadata;
  const { active: live = 0, succeeded = 0 } = job.status ?? {};
  return { uid, annotations, members, isDivided: asksForShares(job) || members.length > 1, live, succeeded };
}

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

export function jobInMember(job: Stored<Job>, copy: Stored<Job> | undefined): WholeInMember {
  if (isFinished(job)) return { pods: [] };
  const pods = [{ pod: job.spec?.template ?? {}, count: job.status?.active ?? 0 }];
  return copy === undefined ? { pods } : { pods, uid: copy.metadata.uid };
}

// All are asked for every second, and objects in stores never change.
const known = new WeakMap<Stored<AnyObject>, WholeInMember>();

/** Returns the objects that the member of that name has. */
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
  return { pods, uid: object.metadata.uid };
}
