import { APPLIED_ANNOTATION, GROUP, HOST_LABEL, WHOLE_KEY } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import { hasLostOwner, isCopy } from "../../copies/copy-metadata.ts";
import type { Marks } from "../../copies/kind.ts";
import { hasOtherCopies, isDefinitions } from "../../copies/objects.ts";
import type { DeleteOptions } from "../../kube/client.ts";
import {
  isKubeError,
  isLastingRefusal,
  isNamespaceTerminating,
  isRefusal,
  type KubeError,
  mayBeStarting,
} from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { isOfAnotherType, ownerOf } from "../../pods/delegate.ts";
import type { Clock } from "../../runtime/clock.ts";
import { isTransient, type WriteGuard } from "../../runtime/write-guard.ts";
import { applyCopy, type CopyApply } from "./apply.ts";
import { ANSWER, type Changed, COPY, type CopyTarget, DELETION, type RefusedRequest } from "./requests.ts";
import { UnsettledCreates } from "./unsettled-creates.ts";

export interface CopySpec<T extends KubeObject> extends CopyTarget<T> {
  readonly namespaces: Pick<MemberNamespaces, "createIn">;
  readonly hostId: string;
  readonly object: T;
  /** The owner of the copy's fields. Default: the client's name. */
  readonly fieldManager?: string | undefined;
  /** By these marks an object of the member's own in the copy's place becomes the copy. Default: it does not. */
  readonly adoptionMarks?: Marks | undefined;
}

/** A JSON patch of a copy, with the resourceVersion that it was made for. */
export interface CopyChange<T extends KubeObject> extends CopyTarget<T> {
  readonly patch: readonly object[];
}

/**
 * `made`: or its marks put back. `found`: from before. `gone`: or changed since it was read. `foreign`: not made by Legation for
 * this host.
 */
export type WriteResult =
  | { readonly type: "made" | "found"; readonly uid: string }
  | { readonly type: "gone" }
  | { readonly type: "foreign" }
  | RefusedRequest;

/** Nothing is wrong with the member: a webhook does not answer, say. */
export interface FailingWrite {
  readonly type: "failing";
  readonly error: KubeError;
  readonly detail: string;
  readonly holdMs: number;
}

/** How long a refused copy is not sent again, or one in whose place there is another object; ms. */
export const REFUSED_FOR_MS = 60_000;
// Equals the hold of a delegate's failing create. A terminating namespace may be gone at any time.
const FAILING_FOR_MS = 30_000;

/** Returns how long a copy that was not taken is held, and for which content: another version may be taken at once. */
export function holdFor(
  answer: RefusedRequest | FailingWrite,
  content: string,
): { readonly holdMs: number; readonly content?: string } {
  if (answer.type === "failing") return { holdMs: answer.holdMs };
  return isNamespaceTerminating(answer.error) ? { holdMs: FAILING_FOR_MS } : { holdMs: REFUSED_FOR_MS, content };
}

export function detailOf(answer: RefusedRequest | FailingWrite): string {
  return answer.type === "failing" ? answer.detail : answer.error.detail;
}

export function refusedFields({ error }: RefusedRequest): readonly string[] {
  return error.details?.causes.flatMap(({ field }) => field ?? []) ?? [];
}

export function isOfNamespace({ resource }: KubeError): boolean {
  return resource === "namespaces";
}

export async function inMember<T>(
  registry: Pick<Registry, "member">,
  name: string,
  write: (member: Member) => Promise<T>,
): Promise<T | undefined> {
  const member = registry.member(name);
  if (member === undefined) return undefined;
  try {
    return await write(member);
  } catch (error) {
    member.noteFailure(error);
    throw error;
  }
}

/** Rejects unless a failure that may pass by itself lasts: users that wait have to hear of that one. */
export async function outlast<Key extends string, Answer>(
  guard: Pick<WriteGuard<Key>, "answered" | "failed">,
  { object, write, member }: { readonly object: Key; readonly write: string; readonly member: Member },
  send: () => Promise<Answer>,
): Promise<Answer | FailingWrite> {
  try {
    const answer = await send();
    guard.answered(object, write);
    return answer;
  } catch (error) {
    if (!isTransient(error)) throw error;
    if (guard.failed(object, write, error, member.reachableSince) === "transient") throw error;
    member.noteFailure(error);
    const holdMs = Math.max(FAILING_FOR_MS, error.retryAfterMs ?? 0);
    const detail = isOfNamespace(error) ? `${error.verb} ${error.target}: ${error.detail}` : error.detail;
    return { type: "failing", error, detail, holdMs };
  }
}

/** Reports whether the member has the source's copy. A copy that lost some of its marks gets them back. Rejects with KubeError. */
export async function findCopy<T extends KubeObject>(wanted: Omit<CopySpec<T>, "namespaces">): Promise<boolean> {
  const { member, resource, ref, object, signal } = wanted;
  const there = await findByList(member.client, resource, ref, signal);
  if (there === undefined) return false;
  const isUnlabelled = lacksWholeLabel(there, object);
  if (isUnlabelled && hasOtherCopies(resource)) return false;
  const known = await (isUnlabelled ? markAgain(wanted, there) : recognize(wanted, there));
  switch (known.type) {
    case "made":
      return true;
    case "found":
      return ownerOf(there)?.uid === ownerOf(object)?.uid;
    case "foreign":
      return false;
    case "gone":
      // Gone, or changed since it was read: its absence has to be seen.
      return findCopy(wanted);
    case "refused":
      throw known.error;
  }
}

/** Rejects with KubeError unless the outcome is certain. */
export async function makeCopy<T extends KubeObject>(spec: CopySpec<T>): Promise<WriteResult> {
  const { member, namespaces, resource, ref, object, fieldManager, signal } = spec;
  const manager = fieldManager === undefined ? {} : { fieldManager };
  const create = () => member.client.create(resource, object, { ...ANSWER, signal, ...manager });
  try {
    const creating = ref.namespace === "" ? create() : namespaces.createIn(member, ref.namespace, signal, create);
    const { metadata } = await member.answerOf(creating);
    return { type: "made", uid: metadata.uid };
  } catch (error) {
    if (!isRefusal(error) && !isKubeError(error, "AlreadyExists", "NotFound")) throw error;
    // An earlier create whose response was lost may have made the copy, and filled the quota that refuses this one.
    const there = await findByList(member.client, resource, ref, signal);
    if (there !== undefined) {
      if (!lacksWholeLabel(there, object)) return await recognize(spec, there);
      // A definition that follows stays its follower's.
      return isDefinitions(resource) ? { type: "foreign" } : await markAgain(spec, there);
    }
    if (mayBeStarting(error)) throw error;
    return error.code === "AlreadyExists" ? { type: "gone" } : { type: "refused", error };
  }
}

/** Reports whether a whole object's copy was made for pods alone, or lost its label by a client of the member. */
function lacksWholeLabel(there: KubeObject, object: KubeObject): boolean {
  const isWhole = ({ metadata }: KubeObject): boolean => metadata?.labels?.[WHOLE_KEY] !== undefined;
  return isWhole(object) && !isWhole(there) && ownerOf(there)?.uid === ownerOf(object)?.uid;
}

/** Returns what the object in a copy's place is. A copy that lost some of its marks gets them back. */
async function recognize<T extends KubeObject>(
  spec: Omit<CopySpec<T>, "namespaces">,
  there: Stored<T>,
): Promise<WriteResult> {
  if (isOfAnotherType(there, spec.resource) || isOfAnotherName(there, spec.object)) return { type: "foreign" };
  if (isCopy(there, spec.hostId, spec.resource)) return { type: "found", uid: there.metadata.uid };
  const { object, adoptionMarks } = spec;
  if (hasLostMarks(there, object, spec.hostId)) return await markAgain(spec, there);
  if (adoptionMarks === undefined || !isUnowned(there)) return { type: "foreign" };
  const annotations = { ...object.metadata?.annotations, ...adoptionMarks.annotations };
  return await putMarks({ ...spec, object: { ...object, metadata: { ...object.metadata, annotations } } }, there);
}

/** Reports whether the marks name another source: a controller derived the object from that one's copy. */
function isOfAnotherName(there: KubeObject, object: KubeObject): boolean {
  const [owner, wanted] = [ownerOf(there), ownerOf(object)];
  if (owner === undefined || wanted === undefined) return false;
  return owner.name !== wanted.name || owner.namespace !== wanted.namespace;
}

async function changeCopy<T extends KubeObject>(change: CopyChange<T>): Promise<Changed> {
  const { member, resource, ref, patch, signal } = change;
  const options = { ...ANSWER, signal };
  try {
    const { metadata } = await member.client.patch(resource, ref, { type: "json", body: patch }, options);
    return { type: "changed", resourceVersion: metadata.resourceVersion };
  } catch (error) {
    if (isLastingRefusal(error)) return { type: "refused", error };
    if (isKubeError(error, "Conflict", "NotFound")) return { type: "moved" };
    throw error;
  }
}

/** Reports whether a client of the member removed some of a copy's marks: those that are left name this very copy. */
function hasLostMarks(there: KubeObject, object: KubeObject, hostId: string): boolean {
  const owner = ownerOf(there);
  if (owner === undefined) return hasLostOwner(there, hostId);
  const host = there.metadata?.labels?.[HOST_LABEL] ?? hostId;
  return host === hostId && owner.uid === ownerOf(object)?.uid;
}

/** Reports whether an object is no other host's copy. */
function isUnowned({ metadata }: KubeObject): boolean {
  return metadata?.labels?.[HOST_LABEL] === undefined;
}

/** The record of the last apply stays, if the copy has it: it says what was adopted, and which fields are others'. */
function markAgain<T extends KubeObject>(spec: Marking<T>, there: Stored<T>): Promise<WriteResult> {
  const { [APPLIED_ANNOTATION]: made, ...annotations } = spec.object.metadata?.annotations ?? {};
  const record = there.metadata.annotations?.[APPLIED_ANNOTATION] ?? made;
  const kept = record === undefined ? annotations : { ...annotations, [APPLIED_ANNOTATION]: record };
  const { object } = spec;
  return putMarks({ ...spec, object: { ...object, metadata: { ...object.metadata, annotations: kept } } }, there);
}

type Marking<T extends KubeObject> = Omit<CopySpec<T>, "namespaces" | "hostId">;

/** The copy's other fields are compared once the watch shows it. */
async function putMarks<T extends KubeObject>(
  { member, resource, ref, object, fieldManager, signal }: Marking<T>,
  { metadata: { uid, resourceVersion } }: Stored<T>,
): Promise<WriteResult> {
  const options = { ...ANSWER, signal, ...(fieldManager === undefined ? {} : { fieldManager }) };
  const { labels, annotations } = object.metadata ?? {};
  const body = { metadata: { uid, resourceVersion, labels: marksOf(labels), annotations: marksOf(annotations) } };
  try {
    await member.client.patch(resource, ref, { type: "merge", body }, options);
    return { type: "made", uid };
  } catch (error) {
    if (isKubeError(error, "Conflict", "NotFound")) return { type: "gone" };
    if (!isRefusal(error)) throw error;
    return { type: "refused", error };
  }
}

function marksOf(map: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => key.startsWith(`${GROUP}/`)));
}

interface Deletion<T extends KubeObject> extends Omit<CopyTarget<T>, "ref"> {
  readonly copy: Stored<T>;
  readonly propagationPolicy?: DeleteOptions["propagationPolicy"] | undefined;
}

export interface CopyWriterOptions<Key extends string> {
  readonly memberNamespaces: Pick<MemberNamespaces, "createIn">;
  readonly hostId: string;
  readonly guard: WriteGuard<Key>;
  readonly clock: Pick<Clock, "now">;
  /** Called when a deletion failed, so that the copy stays. */
  readonly onStays?: (key: Key) => void;
}

/** Writes copies in members. Tells lasting failures from those that pass, and knows which copies may still go. */
export class CopyWriter<Key extends string> {
  readonly #options: CopyWriterOptions<Key>;
  /** Uid of the copy whose deletion was sent: users that come now cannot count on it. */
  readonly #leaving = new Map<Key, string>();
  readonly unsettled: UnsettledCreates<Key>;

  constructor(options: CopyWriterOptions<Key>) {
    this.#options = options;
    this.unsettled = new UnsettledCreates(options.clock);
  }

  /** Reports whether the copy's deletion was sent, and may still happen. */
  isLeaving(key: Key, { metadata: { uid } }: Stored<KubeObject>): boolean {
    return this.#leaving.get(key) === uid;
  }

  forget(key: Key): void {
    this.#leaving.delete(key);
  }

  make<T extends KubeObject>(
    key: Key,
    wanted: Omit<CopySpec<T>, "namespaces" | "hostId">,
  ): Promise<WriteResult | FailingWrite> {
    const { memberNamespaces: namespaces, hostId } = this.#options;
    return this.#outlast(key, wanted.member, async () => {
      try {
        return await makeCopy({ ...wanted, namespaces, hostId });
      } catch (error) {
        this.unsettled.note(key, error);
        throw error;
      }
    });
  }

  change<T extends KubeObject>(key: Key, wanted: CopyChange<T>): Promise<Changed | FailingWrite> {
    return this.#outlast(key, wanted.member, () => changeCopy(wanted));
  }

  apply<T extends KubeObject>(key: Key, wanted: CopyApply<T>): Promise<Changed | FailingWrite> {
    return this.#outlast(key, wanted.member, () => applyCopy(wanted));
  }

  /** Returns why the copy stays if the member refuses its deletion. Rejects with KubeError. */
  delete<T extends KubeObject>(key: Key, deletion: Deletion<T>): Promise<RefusedRequest | FailingWrite | undefined> {
    const write = { object: key, write: DELETION, member: deletion.member };
    return outlast(this.#options.guard, write, () => this.#delete(key, deletion));
  }

  async #delete<T extends KubeObject>(
    key: Key,
    { member, resource, copy, signal, propagationPolicy }: Deletion<T>,
  ): Promise<RefusedRequest | undefined> {
    const { namespace = "", name, uid, resourceVersion } = copy.metadata;
    const wasLeaving = this.isLeaving(key, copy);
    this.#leaving.set(key, uid);
    try {
      const preconditions = { uid, resourceVersion };
      const propagation = propagationPolicy === undefined ? {} : { propagationPolicy };
      await member.client.delete(resource, { namespace, name }, { ...preconditions, ...propagation, signal });
    } catch (error) {
      if (isKubeError(error) && surelyStays(error, wasLeaving)) {
        this.#leaving.delete(key);
        this.#options.onStays?.(key);
      }
      if (isLastingRefusal(error)) return { type: "refused", error };
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    }
    return undefined;
  }

  #outlast<Answer>(key: Key, member: Member, send: () => Promise<Answer>): Promise<Answer | FailingWrite> {
    return outlast(this.#options.guard, { object: key, write: COPY, member }, send);
  }
}

/** Reports whether the copy is certainly still there. `wasLeaving`: an earlier deletion may still happen. */
function surelyStays({ code, retryClass }: KubeError, wasLeaving: boolean): boolean {
  // The watch has yet to tell of its end.
  if (code === "NotFound") return false;
  // A request that was not processed says nothing of the one before.
  if (retryClass === "retry") return !wasLeaving;
  return retryClass === "never";
}
