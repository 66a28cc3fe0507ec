import { PROXY_LABEL, PROXY_LABEL_VALUE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject, PersistentVolumeClaim, Pod, Stored } from "../../api/kubernetes.ts";
import { placementDefaults } from "../../api/resources.ts";
import { claimNames } from "../../copies/claims.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { namespaces, nodes, persistentVolumeClaims, type Resource } from "../../kube/resources.ts";
import { listClusters } from "../clusters.ts";
import { listPods, listProxies } from "../proxies/list.ts";
import { objectOf, type WrittenObject } from "./documents.ts";
import { WORKLOAD_RESOURCES } from "./resources.ts";
import type { HostState } from "./simulation.ts";
import { podsOf, workloadKind } from "./workloads.ts";

/** Reads everything of the host that placement depends on; nothing is written, not even as a trial. */
export async function readHost(host: ClusterClient, signal: AbortSignal): Promise<HostState> {
  const [clusters, virtualNodes, proxies, known, defaults] = await Promise.all([
    listClusters(host, signal),
    listAll(host, nodes, { labelSelector: VIRTUAL_NODE_LABEL, signal }),
    listProxies(host, { signal }),
    listAll(host, namespaces, { signal }),
    listIfServed(host, placementDefaults, signal),
  ]);
  return { clusters, nodes: virtualNodes, proxies, namespaces: known, defaults };
}

/** What the host has already of a manifest's workloads. */
export async function readExisting(
  host: ClusterClient,
  objects: readonly WrittenObject[],
  current: string,
  signal: AbortSignal,
): Promise<WrittenObject[]> {
  const found = objects.map(async (object) => {
    const kind = workloadKind(object);
    const { name, namespace = current } = object.metadata;
    if (kind === undefined || name === undefined) return [];
    const stored = await host.find(WORKLOAD_RESOURCES[kind], { namespace, name }, { signal });
    return stored === undefined ? [] : [objectOf(stored, `${kind} ${namespace}/${name}`)];
  });
  return (await Promise.all(found)).flat();
}

/** Pods that are no proxies, of the namespaces where a manifest has workloads: some of them may be their own. */
export async function readHostPods(
  host: ClusterClient,
  objects: readonly WrittenObject[],
  current: string,
  signal: AbortSignal,
): Promise<Stored<Pod>[]> {
  const workloads = objects.filter(({ metadata: { name }, ...object }) => {
    const kind = workloadKind(object);
    // What a plan says of these depends on no pod that is there.
    return kind !== undefined && kind !== "CronJob" && kind !== "DaemonSet" && name !== undefined;
  });
  const wanted = new Set(workloads.map(({ metadata }) => metadata.namespace ?? current));
  const labelSelector = `${PROXY_LABEL}!=${PROXY_LABEL_VALUE}`;
  const read = [...wanted].map((namespace) => listPods(host, { namespace, labelSelector, signal }));
  return (await Promise.all(read)).flat();
}

/** The claims of the namespaces where a manifest has pods with claims. */
export async function readClaims(
  host: ClusterClient,
  objects: readonly WrittenObject[],
  current: string,
  signal: AbortSignal,
): Promise<Map<string, readonly Stored<PersistentVolumeClaim>[]>> {
  const wanted = new Set(
    objects.flatMap((object) => {
      const kind = workloadKind(object);
      if (kind === undefined) return [];
      const { claims = [], spec } = podsOf(object, kind);
      return claims.length > 0 || claimNames({ spec }).length > 0 ? [object.metadata.namespace ?? current] : [];
    }),
  );
  const read = [...wanted].map(
    async (namespace) => [namespace, await listAll(host, persistentVolumeClaims, { namespace, signal })] as const,
  );
  return new Map(await Promise.all(read));
}

/** An installation of an earlier version has no such resource. */
async function listIfServed<T extends KubeObject>(
  host: ClusterClient,
  resource: Resource<T>,
  signal: AbortSignal,
): Promise<Stored<T>[]> {
  try {
    return await listAll(host, resource, { signal });
  } catch (error) {
    if (isKubeError(error, "NotFound")) return [];
    throw error;
  }
}
