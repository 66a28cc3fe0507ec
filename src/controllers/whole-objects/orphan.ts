import type { AnyObject } from "../../api/delegated-type.ts";
import { GROUP } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";

/** Makes a copy an object of the member's own. Rejects with KubeError. */
export async function removeMarks({
  client,
  resource,
  copy,
  signal,
}: {
  readonly client: ClusterClient;
  readonly resource: Resource<AnyObject>;
  readonly copy: Stored<AnyObject>;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { namespace = "", name, uid, resourceVersion, labels = {}, annotations = {} } = copy.metadata;
  const nulls = (map: Readonly<Record<string, string>>): Record<string, null> =>
    Object.fromEntries(Object.keys(map).flatMap((key) => (key.startsWith(`${GROUP}/`) ? [[key, null]] : [])));
  const body = { metadata: { uid, resourceVersion, labels: nulls(labels), annotations: nulls(annotations) } };
  try {
    await client.patch(resource, { namespace, name }, { type: "merge", body }, { signal, metadataOnly: true });
  } catch (error) {
    // The watch tells what has changed.
    if (!isKubeError(error, "Conflict", "NotFound")) throw error;
  }
}

const definitions: Resource<KubeObject> = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
};

/** Reports whether objects are deleted with their CustomResourceDefinition, by one mistake on the host perhaps. Rejects with KubeError. */
export async function isDefinitionDeleted(
  host: ClusterClient,
  { group, plural }: Resource<AnyObject>,
  signal: AbortSignal,
): Promise<boolean> {
  if (!group.includes(".")) return false;
  const found = await host.find(definitions, { name: `${plural}.${group}` }, { signal });
  return found?.metadata.deletionTimestamp !== undefined;
}
