import { GROUP, HOST_LABEL } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import { isCopy, isLabelled } from "../../copies/copy.ts";
import { isKubeError, isRefusal, mayBeStarting } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import type { Resource } from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";

/** What is wanted in a member. */
export interface CopySpec<T extends KubeObject> {
  readonly member: Member;
  readonly namespaces: MemberNamespaces;
  readonly hostId: string;
  readonly resource: Resource<T>;
  /** Its place, which is also in the object. */
  readonly ref: { readonly namespace: string; readonly name: string };
  readonly object: T;
  readonly signal: AbortSignal;
}

/** Outcome: `made` (or its marks put back), `found` from before, `gone` meanwhile, `foreign` if Legation did not make it for this host. */
export type Made =
  | { readonly type: "made" | "found"; readonly uid: string }
  | { readonly type: "gone" }
  | { readonly type: "foreign" }
  | { readonly type: "refused"; readonly detail: string };

/** Makes a copy in a member, and its namespace where that is missing. Rejects with KubeError unless the answer is sure. */
export async function makeCopy<T extends KubeObject>(spec: CopySpec<T>): Promise<Made> {
  const { member, namespaces, hostId, resource, ref, object, signal } = spec;
  // The content is not read back: a Secret's least of all.
  const create = () => member.client.create(resource, object, { signal, metadataOnly: true });
  try {
    const creating = ref.namespace === "" ? create() : namespaces.createIn(member, ref.namespace, signal, create);
    const { metadata } = await member.answerOf(creating);
    return { type: "made", uid: metadata.uid };
  } catch (error) {
    if (!isRefusal(error) && !isKubeError(error, "AlreadyExists", "NotFound")) throw error;
    // A create whose answer was lost may have made it, whatever this one was told: a quota is full by it, say.
    const there = await findByList(member.client, resource, ref, signal);
    if (there !== undefined) {
      if (isCopy(there, hostId)) return { type: "found", uid: there.metadata.uid };
      return hasLostMarks(there, object, hostId) ? await markAgain(spec, there) : { type: "foreign" };
    }
    if (mayBeStarting(error)) throw error;
    return error.code === "AlreadyExists" ? { type: "gone" } : { type: "refused", detail: error.detail };
  }
}

/** Reports whether a client of the member has left out some of a copy's marks: those that are left name this very copy. */
function hasLostMarks(there: KubeObject, object: KubeObject, hostId: string): boolean {
  const owner = ownerOf(there);
  if (owner === undefined) return isLabelled(there, hostId);
  const host = there.metadata?.labels?.[HOST_LABEL] ?? hostId;
  return host === hostId && owner.uid === ownerOf(object)?.uid;
}

/** Puts the marks back on the copy as it was read. All else of it is compared when the watch shows it. */
async function markAgain<T extends KubeObject>(
  { member, resource, ref, object, signal }: CopySpec<T>,
  { metadata: { uid, resourceVersion } }: Stored<T>,
): Promise<Made> {
  const { labels, annotations } = object.metadata ?? {};
  const body = { metadata: { uid, resourceVersion, labels: marksOf(labels), annotations: marksOf(annotations) } };
  try {
    await member.client.patch(resource, ref, { type: "merge", body }, { signal, metadataOnly: true });
    return { type: "made", uid };
  } catch (error) {
    if (isKubeError(error, "Conflict", "NotFound")) return { type: "gone" };
    if (!isRefusal(error)) throw error;
    return { type: "refused", detail: error.detail };
  }
}

function marksOf(map: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => key.startsWith(`${GROUP}/`)));
}
