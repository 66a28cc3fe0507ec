import type { KubeObject } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isKubeError, isLastingRefusal } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";

/** How a copy in a member is to become. */
export interface CopyChange<T extends KubeObject> {
  readonly member: Member;
  readonly resource: Resource<T>;
  readonly ref: { readonly namespace: string; readonly name: string };
  /** A JSON patch, with the version that it was made for. */
  readonly patch: readonly object[];
  readonly signal: AbortSignal;
}

/** What came of it: `moved` was changed by somebody else since, has gone, or is another by now. */
export type Changed =
  | { readonly type: "changed"; readonly resourceVersion: string }
  | { readonly type: "moved" }
  | { readonly type: "refused"; readonly detail: string };

/** Changes a copy in a member. Rejects with KubeError unless the answer is sure. */
export async function changeCopy<T extends KubeObject>(change: CopyChange<T>): Promise<Changed> {
  const { member, resource, ref, patch, signal } = change;
  // The content is not read back: a Secret's least of all.
  const options = { signal, metadataOnly: true };
  try {
    const { metadata } = await member.client.patch(resource, ref, { type: "json", body: patch }, options);
    return { type: "changed", resourceVersion: metadata.resourceVersion };
  } catch (error) {
    if (isLastingRefusal(error)) return { type: "refused", detail: error.detail };
    if (isKubeError(error, "Conflict", "NotFound")) return { type: "moved" };
    throw error;
  }
}
