import { HOST_LABEL } from "../../../api/keys.ts";
import { objectRef, type Pod, type Stored } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { ignoring, isKubeError, isLastingRefusal } from "../../../kube/errors.ts";
import { pods } from "../../../kube/resources.ts";
import { madeByHost, marksOf, ownerOf } from "../../../pods/delegate.ts";
import type { Expectation } from "../../../runtime/controller.ts";
import type { Memories } from "../../../scheduling/memories.ts";
import { DELEGATE_MARKS } from "../../../scheduling/memory.ts";
import type { RefusedWrites } from "../../refused-writes.ts";
import type { ActionOf } from "../decision/decision.ts";
import type { View } from "../decision/view.ts";
import type { ActionOptions, Context, Result } from "../options.ts";
import { expectInMember } from "./expectations.ts";

type RestoreAction = ActionOf<"restoreMarks">;

interface RestoreOptions extends Pick<ActionOptions, "registry" | "identity"> {
  readonly memories: Memories;
  readonly refusedWrites: Pick<RefusedWrites, "tell" | "over">;
}

/** Asks a member for the delegate that a proxy records. One with the recorded uid gets its marks back. */
export async function restoreDelegateMarks(action: RestoreAction, context: Context, options: RestoreOptions): Result {
  const { registry, memories, identity } = options;
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
      const isLeft = !memories.writes.mayWrite(proxyUid, DELEGATE_MARKS);
      return isLeft ? await endUnmarked(member, action, context) : await mark(member, action, context, options);
    }
    return expectInMember(member.name, ({ metadata }) => metadata.uid === delegateUid);
  } catch (error) {
    member.noteFailure(error);
    throw error;
  }
}

/** No watch shows an unmarked delegate, so it is asked for again. */
async function endUnmarked(
  { client }: Member,
  { delegateUid: uid, ends }: RestoreAction,
  { key, signal }: Context,
): Result {
  if (ends === undefined) return undefined;
  await ignoring(client.delete(pods, objectRef(key), { uid, signal, ...ends }), "NotFound", "Conflict");
  return () => false;
}

function isMarked(pod: Stored<Pod>, proxyUid: string, hostId: string): boolean {
  return madeByHost(pod, hostId) && ownerOf(pod)?.uid === proxyUid;
}

/** The uid is a precondition. */
export async function mark(
  member: Member,
  action: Pick<RestoreAction, "proxyUid" | "delegateUid">,
  context: Context,
  options: RestoreOptions,
): Result {
  const { proxyUid, delegateUid: uid } = action;
  const { memories, identity } = options;
  const { key, signal, log } = context;
  const body = { metadata: { uid, ...marksOf({ ...objectRef(key), uid: proxyUid }, identity) } };
  const leave = (why: string): Expectation<View> => {
    memories.writes.hold(proxyUid, DELEGATE_MARKS, "Refused");
    tellUnmarked(member, action, why, context, options);
    return () => true;
  };
  try {
    const written = await member.client.patch(pods, objectRef(key), { type: "merge", body }, { signal });
    if (!isMarked(written, proxyUid, identity.id)) return leave("the cluster removes them again");
    if (memories.writes.written(proxyUid, DELEGATE_MARKS, { [DELEGATE_MARKS]: uid }))
      return leave("another client there keeps removing them");
    options.refusedWrites.over(key, proxyUid, "marks");
    log.info({ member: member.name }, "a delegate has its marks back, which another client had removed");
    return expectInMember(member.name, ({ metadata }) => metadata.uid === uid);
  } catch (error) {
    if (isLastingRefusal(error)) return leave(error.detail);
    // Gone, or another pod by now: the member is asked again.
    if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    return () => true;
  }
}

function tellUnmarked(
  { name }: Member,
  { proxyUid }: Pick<RestoreAction, "proxyUid">,
  why: string,
  { key, log }: Context,
  { refusedWrites, identity }: RestoreOptions,
): void {
  const label = `${HOST_LABEL}=${identity.id}`;
  const message = `${name}: the pod is there without Legation's label ${label} and owner annotation, and does not get them back: ${why}; what happens to it is not told here until it has them`;
  log.warn({ member: name }, message);
  refusedWrites.tell(key, proxyUid, "marks", { reason: "NotFollowed", message });
}

export async function findDelegate(
  { client }: Member,
  proxyUid: string,
  { key, signal }: Context,
): Promise<Stored<Pod> | undefined> {
  const pod = await client.find(pods, objectRef(key), { signal });
  return pod !== undefined && ownerOf(pod)?.uid === proxyUid ? pod : undefined;
}
