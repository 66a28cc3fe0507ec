import { HOST_LABEL } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listPages } from "../../kube/list.ts";
import type { Discovery } from "../shared/discovery.ts";
import { kindName } from "../shared/named-types.ts";

/** Objects in a namespace beside Legation's own. */
export interface Contents {
  /** Objects of other owners, as `ConfigMap settings`. */
  readonly foreign: readonly string[];
  /** Kinds or API groups that could not be read, so that the namespace may not be empty. */
  readonly unknown: readonly string[];
}

// Kubernetes creates these in every namespace, or beside other objects.
const FOLLOWERS = new Set(["events", "endpoints", "endpointslices", "leases"]);

/** Lists a namespace's objects that this host did not create. */
export async function contentsOf(
  client: ClusterClient,
  discovery: Discovery,
  namespace: string,
  hostId: string,
  signal: AbortSignal,
): Promise<Contents> {
  const { resources, unknown } = await discovery.removable();
  const found: { readonly kind: string; readonly object: Stored<KubeObject> }[] = [];
  const unread = [...unknown.keys()];
  for (const resource of resources) {
    if (FOLLOWERS.has(resource.plural)) continue;
    try {
      // Reads all pages: a foreign object may follow many of this host's.
      for await (const page of listPages(client, resource, { namespace, dropManagedFields: true, signal })) {
        for (const { metadata } of page) found.push({ kind: resource.kind, object: { metadata } });
      }
    } catch (error) {
      if (!isKubeError(error) || signal.aborted) throw error;
      // A kind that cannot be listed, or is gone, has no objects in the namespace.
      if (!isKubeError(error, "NotFound", "MethodNotAllowed")) unread.push(kindName(resource));
    }
  }
  return { foreign: foreignAmong(found, hostId), unknown: unread };
}

/** Returns the objects that are neither this host's, nor owned by its objects, nor part of every namespace. */
export function foreignAmong(
  found: readonly { readonly kind: string; readonly object: Stored<KubeObject> }[],
  hostId: string,
): string[] {
  const own = new Set(
    found
      .filter(({ object }) => object.metadata.labels?.[HOST_LABEL] === hostId)
      .map(({ object }) => object.metadata.uid),
  );
  return found
    .filter(({ kind, object }) => {
      const { uid, name, ownerReferences = [] } = object.metadata;
      // Claims hold data and stay. The claim of an ephemeral volume goes with its pod.
      if (kind === "PersistentVolumeClaim" && own.has(uid)) return true;
      if (own.has(uid) || ownerReferences.some((owner) => own.has(owner.uid))) return false;
      if (kind === "ServiceAccount") return name !== "default";
      if (kind === "ConfigMap") return name !== "kube-root-ca.crt";
      return true;
    })
    .map(({ kind, object }) => `${kind} ${object.metadata.name}`);
}
