import type { ClusterClient } from "../kube/client.ts";
import { ignoring } from "../kube/errors.ts";
import type { KubeEvent } from "../kube/objects.ts";
import { events } from "../kube/resources.ts";

export async function createEvent(client: ClusterClient, event: KubeEvent, signal: AbortSignal): Promise<void> {
  await client.create(events, event, { signal, metadataOnly: true });
}

/**
 * Changes an event. Resolves to false if it is not there. An empty body only asks: the controller has no right to read
 * events. Rejects with KubeError.
 */
export async function patchEvent(
  client: ClusterClient,
  { namespace = "", name = "" }: KubeEvent["metadata"],
  body: object,
  signal: AbortSignal,
): Promise<boolean> {
  const patch = client.patch(events, { namespace, name }, { type: "merge", body }, { signal, metadataOnly: true });
  return (await ignoring(patch, "NotFound")) !== undefined;
}
