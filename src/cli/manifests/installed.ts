import { HOST_LABEL, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import type { Resource } from "../../kube/resources.ts";
import { INSTALLED_LABELS } from "./labels.ts";
import type { Manifest } from "./load.ts";

/** A kind of the installation, as manifests name it. */
export interface KindName {
  readonly apiVersion: string;
  readonly kind: string;
}

/** The kinds of these manifests, each once. */
export function kindsOf(manifests: readonly Manifest[]): KindName[] {
  return [
    ...new Map(manifests.map(({ apiVersion, kind }) => [`${apiVersion}/${kind}`, { apiVersion, kind }])).values(),
  ];
}

// All in which any version has objects.
const INSTALLED_NAMESPACES: ReadonlySet<string | undefined> = new Set([
  undefined,
  SYSTEM_NAMESPACE,
  "kube-node-lease",
  "kube-public",
  "kube-system",
]);

/**
 * What an installation made of a kind, of this version or another. What other hosts have here, because this cluster is a
 * member of theirs, carries their label and is not among it; nor is what somebody labelled in a namespace of their own.
 */
export async function listInstalled(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  signal: AbortSignal,
): Promise<readonly Stored<KubeObject>[]> {
  const own = Object.entries(INSTALLED_LABELS).map(([key, value]) => `${key}=${value}`);
  const labelSelector = [...own, `!${HOST_LABEL}`].join(",");
  const found = await listAll(client, resource, { labelSelector, signal });
  return found.filter(({ metadata: { namespace } }) => INSTALLED_NAMESPACES.has(namespace));
}
