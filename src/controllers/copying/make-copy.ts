import type { KubeObject } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import { isCopy } from "../../copies/copy.ts";
import { isKubeError, isRefusal, mayBeStarting } from "../../kube/errors.ts";
import { findByList } from "../../kube/find-by-list.ts";
import type { Resource } from "../../kube/resources.ts";

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

/** What came of it: `found` was made before, `gone` was there a moment ago, `foreign` is there and not made by Legation for this host. */
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
    const { metadata } = await member.answerOf(namespaces.createIn(member, ref.namespace, signal, create));
    return { type: "made", uid: metadata.uid };
  } catch (error) {
    if (!isRefusal(error) && !isKubeError(error, "AlreadyExists", "NotFound")) throw error;
    // A create whose answer was lost may have made it, whatever this one was told: a quota is full by it, say.
    const there = await findByList(member.client, resource, ref, signal);
    if (there !== undefined)
      return isCopy(there, hostId) ? { type: "found", uid: there.metadata.uid } : { type: "foreign" };
    if (mayBeStarting(error)) throw error;
    return error.code === "AlreadyExists" ? { type: "gone" } : { type: "refused", detail: error.detail };
  }
}
