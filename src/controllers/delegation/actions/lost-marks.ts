import { HOST_LABEL } from "../../../api/keys.ts";
import type { ObjectKey, Pod, Stored } from "../../../api/kubernetes.ts";
import { objectRef } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { isKubeError, isLastingRefusal } from "../../../kube/errors.ts";
import { pods } from "../../../kube/resources.ts";
import { madeByHost, marksOf, ownerOf } from "../../../pods/delegate.ts";
import type { ActionContext, Shown } from "../../../runtime/controller.ts";
import type { ActionOf } from "../model/decision.ts";
import { MARKS, type Memories } from "../model/memory.ts";
import type { View } from "../model/view.ts";
import type { DelegationOptions } from "../options.ts";
import { shownInMember } from "./expectations.ts";
import type { Refusals } from "./refused-writes.ts";

type LookAction = ActionOf<"look">;
type Context = ActionContext<ObjectKey>;
type Result = Promise<Shown<View> | undefined>;

interface LookOptions extends Pick<DelegationOptions, "registry" | "identity" | "clock"> {
  readonly memories: Memories;
  readonly refusals: Pick<Refusals, "tell" | "over">;
}

/**
 * Asks a member for the delegate that a proxy records. One that is there is this host's, whatever it bears: the uid says so. It gets
 * back the label and the annotation that it is known by. Rejects with KubeError: as long as nobody answers, nothing is known.
 */
export async function look(action: LookAction, context: Context, options: LookOptions): Result {
  const { registry, memories, identity, clock } = options;
  const { proxyUid, delegateUid } = action;
  const member = registry.member(action.member);
  if (member === undefined) return undefined;
  try {
    const { key, signal } = context;
    const there = await member.client.find(pods, objectRef(key), { signal });
    if (there?.metadata.uid !== delegateUid) {
      memories.noteGone(proxyUid, delegateUid);
      return () => true;
    }
    if (!isMarked(there, proxyUid, identity.id)) {
      const isLeft = memories.isIneffective(proxyUid, MARKS, clock.now());
      return isLeft ? await endUnmarked(member, action, context) : await mark(member, action, context, options);
    }
    // The watch has yet to tell of it.
    return shownInMember(member.name, ({ metadata }) => metadata.uid === delegateUid);
  } catch (error) {
    member.noteFailure(error);
    throw error;
  }
}

/** What cannot be followed ends with its proxy all the same; whether it has is asked again, since no watch tells. */
async function endUnmarked(
  { client }: Member,
  { delegateUid: uid, ends }: LookAction,
  { key, signal }: Context,
): Result {
  if (ends === undefined) return undefined;
  try {
    await client.delete(pods, objectRef(key), { uid, signal, ...ends });
  } catch (error) {
    if (!isKubeError(error, "NotFound", "Conflict")) throw error;
  }
  return () => false;
}

function isMarked(pod: Stored<Pod>, proxyUid: string, hostId: string): boolean {
  return madeByHost(pod, hostId) && ownerOf(pod)?.uid === proxyUid;
}

/** Gives a delegate its marks back; its uid is a precondition of the API server's. Rejects with KubeError. */
export async function mark(
  member: Member,
  action: Pick<LookAction, "proxyUid" | "delegateUid">,
  context: Context,
  options: LookOptions,
): Result {
  const { proxyUid, delegateUid: uid } = action;
  const { memories, identity, clock } = options;
  const { key, signal, log } = context;
  const body = { metadata: { uid, ...marksOf({ ...objectRef(key), uid: proxyUid }, identity) } };
  const leave = (why: string): Shown<View> => {
    memories.noteIneffective(proxyUid, MARKS, clock.now());
    tellUnmarked(member, action, why, context, options);
    return () => true;
  };
  try {
    const written = await member.client.patch(pods, objectRef(key), { type: "merge", body }, { signal });
    if (!isMarked(written, proxyUid, identity.id)) return leave("the cluster takes them off again");
    if (memories.noteWritten(proxyUid, { [MARKS]: uid }, clock.now())) return leave("somebody keeps taking them off");
    options.refusals.over(key, proxyUid, "marks");
    log.info({ member: member.name }, "a delegate has its marks back, which somebody had taken off");
    return shownInMember(member.name, ({ metadata }) => metadata.uid === uid);
  } catch (error) {
    if (isLastingRefusal(error)) return leave(error.detail);
    // Gone, or another by now: looked for again.
    if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    return () => true;
  }
}

function tellUnmarked(
  { name }: Member,
  { proxyUid }: Pick<LookAction, "proxyUid">,
  why: string,
  { key, log }: Context,
  { refusals, identity }: LookOptions,
): void {
  const label = `${HOST_LABEL}=${identity.id}`;
  const message = `${name}: the pod is there without Legation's label ${label} and owner annotation, and does not get them back: ${why}; what happens to it is not told here until it has them`;
  log.warn({ member: name }, message);
  refusals.tell(key, proxyUid, "marks", { reason: "NotFollowed", message });
}
