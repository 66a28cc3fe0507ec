import { OVERFLOW_LABEL_VALUE, PROXY_LABEL } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { pods } from "../../kube/resources.ts";
import { isDeleting } from "../../pods/phase.ts";

// A pod of the group that the host's scheduler places just now is seen by the next one that is due.
const FRESH_MS = 3000;

/** Which groups have pods on the host's own nodes: read only where a pod of a group is about to be delegated. */
export class HostGroups {
  readonly #namespaces = new Map<string, { readonly at: number; readonly ids: ReadonlySet<string> }>();

  /** Whether the group has pods there; undefined when that was not read lately. */
  has(namespace: string, id: string, now: number): boolean | undefined {
    const known = this.#namespaces.get(namespace);
    return known === undefined || now - known.at > FRESH_MS ? undefined : known.ids.has(id);
  }

  /** Reads them for a namespace. What has failed or is being deleted holds its group nowhere, as in members. */
  async read(
    host: ClusterClient,
    namespace: string,
    groupOf: (pod: Stored<Pod>) => string | undefined,
    { now, signal }: { readonly now: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const { items } = await host.list(pods, {
      namespace,
      labelSelector: `${PROXY_LABEL}=${OVERFLOW_LABEL_VALUE}`,
      fieldSelector: "spec.nodeName!=",
      dropManagedFields: true,
      signal,
    });
    const holding = items.filter((pod) => !isDeleting(pod) && pod.status?.phase !== "Failed");
    for (const [name, { at }] of this.#namespaces) if (now - at > FRESH_MS) this.#namespaces.delete(name);
    this.#namespaces.set(namespace, { at: now, ids: new Set(holding.flatMap((pod) => groupOf(pod) ?? [])) });
  }
}
