import { type ObjectKey, objectRef, type Pod, type Stored } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { pods } from "../../../kube/resources.ts";
import { ownerOf } from "../../../pods/delegate.ts";
import type { ActionContext } from "../../../runtime/controller.ts";

/** Looks for the proxy's delegate in the member itself; undefined when it is not there. Rejects with KubeError. */
export async function findDelegate(
  { client }: Member,
  proxyUid: string,
  { key, signal }: ActionContext<ObjectKey>,
): Promise<Stored<Pod> | undefined> {
  const pod = await client.find(pods, objectRef(key), { signal });
  return pod !== undefined && ownerOf(pod)?.uid === proxyUid ? pod : undefined;
}
