import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Resource } from "../../kube/resources.ts";
import type { Discovery } from "../discovery/discovery.ts";
import { type KindName, listInstalled } from "../install/installed.ts";
import { remove } from "../removal.ts";
import { waitFor } from "../wait.ts";

export interface RemovalContext {
  readonly host: ClusterClient;
  readonly discovery: Discovery;
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
}

/** Deletes every object of these kinds that an installation made, and waits until they are gone. */
export async function removeInstalled(kinds: readonly KindName[], context: RemovalContext): Promise<void> {
  const { host, discovery, signal, report } = context;
  for (const { apiVersion, kind } of kinds) {
    const resource = await discovery.find(apiVersion, kind);
    if (resource === undefined) continue;
    for (const object of await listInstalled(host, resource, signal)) {
      await removeAndWait(resource, object, context);
      report(`${kind} ${object.metadata.name} removed`);
    }
  }
}

const GONE_WITHIN_MS = 60_000;

/** Deletes one object and waits until it is gone; one that hangs is reported, not waited for for ever. */
export async function removeAndWait(
  resource: Resource<KubeObject>,
  object: Stored<KubeObject>,
  { host, signal, report }: RemovalContext,
): Promise<void> {
  const { name, namespace, uid } = object.metadata;
  const ref = namespace === undefined ? { name } : { namespace, name };
  await remove(host, resource, ref, { uid, signal });
  const gone = await waitFor(
    async () => ((await host.find(resource, ref, { signal }))?.metadata.uid === uid ? undefined : true),
    { timeoutMs: GONE_WITHIN_MS, signal },
  );
  if (gone === undefined)
    report(`${resource.kind} ${name} is being deleted, but was not gone after ${GONE_WITHIN_MS / 1000} s`);
}
