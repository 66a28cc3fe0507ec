import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Resource } from "../../kube/resources.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Discovery } from "../discovery/discovery.ts";
import { type KindName, listInstalled } from "../manifests/installed.ts";
import { remove } from "../removal.ts";
import { waitFor } from "../wait.ts";

export interface RemovalContext {
  readonly host: ClusterClient;
  readonly discovery: Discovery;
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
  /** Notes what could not be taken away, and why, and says so at once. */
  readonly remains: (what: string) => void;
  readonly clock?: Clock;
}

/** Deletes every object of these kinds that an installation made, and waits until they are gone. */
export async function removeInstalled(kinds: readonly KindName[], context: RemovalContext): Promise<void> {
  const { host, discovery, signal } = context;
  for (const { apiVersion, kind } of kinds) {
    const resource = await discovery.find(apiVersion, kind);
    if (resource === undefined) continue;
    for (const object of await listInstalled(host, resource, signal)) {
      await removeAndWait(resource, object, context);
    }
  }
}

const GONE_WITHIN_MS = 60_000;

/** Deletes one object, waits until it is gone, and says so; one that hangs remains, and is not waited for for ever. */
export async function removeAndWait(
  resource: Resource<KubeObject>,
  object: Stored<KubeObject>,
  { host, signal, report, remains, ...options }: RemovalContext,
): Promise<void> {
  const { name, namespace, uid } = object.metadata;
  const ref = namespace === undefined ? { name } : { namespace, name };
  const what = `${resource.kind} ${name}`;
  await remove(host, resource, ref, { uid, signal });
  const isGone = async (): Promise<boolean> => (await host.find(resource, ref, { signal }))?.metadata.uid !== uid;
  let told = false;
  const gone = await waitFor(
    async () => {
      if (await isGone()) return true;
      if (!told) report(`${what} is being deleted; waiting until it is gone`);
      told = true;
      return undefined;
    },
    { timeoutMs: GONE_WITHIN_MS, signal, ...options },
  );
  if (gone) report(`${what} removed`);
  else remains(`${what}: it is being deleted, but was not gone after ${GONE_WITHIN_MS / 1000} s`);
}
