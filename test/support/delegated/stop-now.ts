import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { KWOK_ANNOTATIONS } from "../clusters/stages.ts";

/** Lets a pod go that is being deleted, and that kwok would keep for as long as its annotation says. */
export async function stopNow(client: ClusterClient, namespace: string, name: string): Promise<void> {
  const body = { metadata: { annotations: { [KWOK_ANNOTATIONS.stopsAfter]: null } } };
  await client.patch(pods, { namespace, name }, { type: "merge", body });
}
