import { HOST_LABEL } from "../../api/keys.ts";
import type { Member } from "../../clusters/member.ts";
import { listPages } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import { type DependencyRef, dependencyKey, dependencyKeys } from "../../pods/dependencies.ts";

/** Reports whether a delegate of another host that has not ended names the class. Rejects with KubeError. */
export async function isUsedByOtherHost(
  member: Pick<Member, "client">,
  ref: DependencyRef,
  hostId: string,
  signal: AbortSignal,
): Promise<boolean> {
  const key = dependencyKey(ref);
  const options = {
    labelSelector: `${HOST_LABEL},${HOST_LABEL}!=${hostId}`,
    fieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
    signal,
  };
  for await (const page of listPages(member.client, pods, options)) {
    if (page.some((pod) => dependencyKeys(pod).includes(key))) return true;
  }
  return false;
}
