import { HOST_LABEL } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Resource } from "../../kube/resources.ts";
import type { Manifest } from "../manifests/load.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "./plan.ts";

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

/**
 * What an installation made of a kind, of this version or another. What other hosts have here, because this cluster is a
 * member of theirs, carries their label and is not among it.
 */
export async function listInstalled(
  client: ClusterClient,
  resource: Resource<KubeObject>,
  signal: AbortSignal,
): Promise<readonly Stored<KubeObject>[]> {
  const labelSelector = `${MANAGED_BY_LABEL}=${MANAGED_BY},!${HOST_LABEL}`;
  return (await client.list(resource, { labelSelector, signal })).items;
}
