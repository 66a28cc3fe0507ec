import {
  COPY_LABEL,
  COPY_LABEL_VALUE,
  HOME_API_LABEL,
  HOME_API_LABEL_VALUE,
  HOST_LABEL,
  MANAGED_BY,
  MANAGED_BY_LABEL,
} from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { DEPENDENCIES } from "../../copies/dependencies.ts";
import { isDerived } from "../../copies/kind.ts";
import { NETWORK_POLICY } from "../../copies/network-policies.ts";
import { hasWholeLabel } from "../../copies/objects.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listPages } from "../../kube/list.ts";
import {
  apiVersionOf,
  customResourceDefinitions,
  endpointSlices,
  kindName,
  namespaces,
  networkPolicies,
  persistentVolumeClaims,
  pods,
  type Resource,
  secrets,
  serviceExports,
  services,
} from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { apiSecretName } from "../../pods/home-api.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import type { Discovery } from "../shared/discovery.ts";

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
  const { types, stale } = await discovery.removable();
  const found: FoundObject[] = [];
  const unread = stale.map(apiVersionOf);
  for (const { resource } of types) {
    if (FOLLOWERS.has(resource.plural)) continue;
    try {
      // Reads all pages: a foreign object may follow many of this host's.
      for await (const page of listPages(client, resource, { namespace, dropManagedFields: true, signal })) {
        for (const { metadata } of page) found.push({ resource, object: { metadata } });
      }
    } catch (error) {
      if (!isKubeError(error) || signal.aborted) throw error;
      // A kind that cannot be listed, or is gone, has no objects in the namespace.
      if (!isKubeError(error, "NotFound", "MethodNotAllowed")) unread.push(kindName(resource));
    }
  }
  return { foreign: foreignAmong(found, hostId), unknown: unread };
}

export interface FoundObject {
  readonly resource: Pick<Resource<KubeObject>, "group" | "plural" | "kind">;
  readonly object: Stored<KubeObject>;
}

// Kinds that Legation creates beside whole objects, which have a label of their own.
const CREATED: ReadonlySet<string> = new Set(
  [
    namespaces,
    customResourceDefinitions,
    pods,
    persistentVolumeClaims,
    ...WHOLE_TYPES.map(({ resource }) => resource),
    networkPolicies,
    services,
    endpointSlices,
    serviceExports,
    ...Object.values(DEPENDENCIES).map(({ resource }) => resource),
  ].map(kindName),
);

const UNLABELLED: ReadonlySet<string> = new Set([pods, namespaces].map(kindName));

/** Reports whether this host created the object: an operator may carry labels and annotations of a copy over to its own. */
export function isOwnObject({ resource, object }: FoundObject, hostId: string): boolean {
  const { name, namespace = "", labels = {}, ownerReferences = [] } = object.metadata;
  if (labels[HOST_LABEL] !== hostId) return false;
  const owner = ownerOf(object);
  const kind = kindName(resource);
  const isWhole = hasWholeLabel(object);
  if (owner === undefined) {
    // `legation join` made it.
    if (labels[MANAGED_BY_LABEL] === MANAGED_BY) return true;
    // A client may have removed the annotation. Only delegates have an owner in the member: their namespace.
    return !isWhole && CREATED.has(kind) && ownerReferences.every((reference) => reference.kind === namespaces.kind);
  }
  if (labels[HOME_API_LABEL] === HOME_API_LABEL_VALUE) {
    return kind === kindName(secrets) && name === apiSecretName(owner.uid) && namespace === owner.namespace;
  }
  // Delegates and namespaces have no label of copies.
  const isMarked = isWhole || labels[COPY_LABEL] === COPY_LABEL_VALUE || UNLABELLED.has(kind);
  const isPolicyOfPods = kind === kindName(networkPolicies) && !isWhole;
  return isMarked && !isDerived(object, isPolicyOfPods ? NETWORK_POLICY : { resource }, hostId);
}

/** Returns the objects that are neither this host's, nor owned by its objects, nor part of every namespace. */
export function foreignAmong(found: readonly FoundObject[], hostId: string): string[] {
  const own = new Set(found.filter((each) => isOwnObject(each, hostId)).map(({ object }) => object.metadata.uid));
  return found
    .filter(({ resource: { kind }, object }) => {
      const { uid, name, ownerReferences = [] } = object.metadata;
      // Claims hold data and stay. The claim of an ephemeral volume goes with its pod.
      if (kind === "PersistentVolumeClaim" && own.has(uid)) return true;
      if (own.has(uid) || ownerReferences.some((owner) => own.has(owner.uid))) return false;
      if (kind === "ServiceAccount") return name !== "default";
      if (kind === "ConfigMap") return name !== "kube-root-ca.crt";
      return true;
    })
    .map(({ resource, object }) => `${resource.kind} ${object.metadata.name}`);
}
