import { PROXY_LABEL, PROXY_LABEL_VALUE, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { KubeObject, PersistentVolumeClaim, Pod, ResourceQuota, Stored } from "../../api/kubernetes.ts";
import { placementDefaults } from "../../api/resources.ts";
import { claimNames } from "../../copies/claims.ts";
import { DEPENDENCIES } from "../../copies/dependencies.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { apiVersionOf, namespaces, nodes, persistentVolumeClaims, pods, type Resource } from "../../kube/resources.ts";
import {
  CLASS_KINDS,
  type DependencyKey,
  dependencyKey,
  dependencyKeys,
  dependencyRef,
  isClass,
  NAMESPACED_KINDS,
} from "../../pods/dependencies.ts";
import { objectOf, type WrittenObject } from "../shared/documents.ts";
import { listClusters, listProxies } from "../shared/reading.ts";
import type { HostState } from "./simulation.ts";
import { podsOf, WORKLOAD_RESOURCES, type WorkloadKind, type WorkloadPods, workloadKind } from "./workloads.ts";

/** Reads everything of the host that placement depends on. */
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

/** The host's objects that the workloads of a manifest meet. */
export interface ManifestState {
  /** The workloads themselves, where the host has them. */
  readonly existing: readonly WrittenObject[];
  /** Pods of their namespaces that are no proxies. */
  readonly hostPods: readonly Stored<Pod>[];
  readonly claims: ReadonlyMap<string, readonly Stored<PersistentVolumeClaim>[]>;
  readonly quotas: readonly Stored<ResourceQuota>[];
  /** Objects that pods name and that neither the host nor the manifest has. */
  readonly missing: ReadonlySet<DependencyKey>;
  /** Objects that pods name and that the manifest creates. */
  readonly coming: ReadonlySet<DependencyKey>;
  readonly notChecked: readonly string[];
}

/** A workload of a manifest. */
interface Written {
  readonly kind: WorkloadKind;
  readonly namespace: string;
  readonly name: string | undefined;
  readonly pods: WorkloadPods;
}

function workloadsOf(objects: readonly WrittenObject[], current: string): Written[] {
  return objects.flatMap((object) => {
    const kind = workloadKind(object);
    const { namespace = current, name } = object.metadata;
    return kind === undefined ? [] : [{ kind, namespace, name, pods: podsOf(object, kind) }];
  });
}

/** Reads what the workloads of a manifest meet. Objects that the asker may not read are told in `notChecked`. */
export async function readManifestState(
  host: ClusterClient,
  objects: readonly WrittenObject[],
  current: string,
  signal: AbortSignal,
): Promise<ManifestState> {
  const notChecked = new Set<string>();
  const workloads = workloadsOf(objects, current);
  const ownPods = workloads.filter(({ kind }) => kind !== "DaemonSet");
  const [existing, hostPods, claims, quotas, absent] = await Promise.all([
    readExisting(host, workloads, signal),
    readHostPods(host, ownPods, signal),
    readClaims(host, objects, current, signal),
    readQuotas(host, ownPods, notChecked, signal),
    readAbsent(host, ownPods, notChecked, signal),
  ]);
  const written = keysOf(objects, current);
  const missing = new Set(absent.filter((key) => !written.has(key)));
  const coming = new Set(absent.filter((key) => written.has(key)));
  return { existing, hostPods, claims, quotas, missing, coming, notChecked: [...notChecked].sort() };
}

async function readExisting(
  host: ClusterClient,
  workloads: readonly Written[],
  signal: AbortSignal,
): Promise<WrittenObject[]> {
  const found = workloads.map(async ({ kind, namespace, name }) => {
    if (name === undefined) return [];
    const stored = await host.find(WORKLOAD_RESOURCES[kind], { namespace, name }, { signal });
    return stored === undefined ? [] : [objectOf(stored, `${kind} ${namespace}/${name}`)];
  });
  return (await Promise.all(found)).flat();
}

async function readHostPods(
  host: ClusterClient,
  workloads: readonly Written[],
  signal: AbortSignal,
): Promise<Stored<Pod>[]> {
  // The plan of a CronJob, and of generated names, does not depend on present pods.
  const dependent = workloads.filter(({ kind, name }) => kind !== "CronJob" && name !== undefined);
  const labelSelector = `${PROXY_LABEL}!=${PROXY_LABEL_VALUE}`;
  const read = namespacesOf(dependent).map((namespace) => listAll(host, pods, { namespace, labelSelector, signal }));
  return (await Promise.all(read)).flat();
}

function namespacesOf(workloads: readonly Written[]): string[] {
  return [...new Set(workloads.map(({ namespace }) => namespace))];
}

/** Reads the claims of the namespaces where a manifest has pods with claims. */
export async function readClaims(
  host: ClusterClient,
  objects: readonly WrittenObject[],
  current: string,
  signal: AbortSignal,
): Promise<Map<string, readonly Stored<PersistentVolumeClaim>[]>> {
  const claiming = workloadsOf(objects, current).filter(
    ({ pods: { claims = [], spec } }) => claims.length > 0 || claimNames({ spec }).length > 0,
  );
  const read = namespacesOf(claiming).map(
    async (namespace) => [namespace, await listAll(host, persistentVolumeClaims, { namespace, signal })] as const,
  );
  return new Map(await Promise.all(read));
}

const QUOTAS: Resource<ResourceQuota> = {
  group: "",
  version: "v1",
  plural: "resourcequotas",
  kind: "ResourceQuota",
  namespaced: true,
};

async function readQuotas(
  host: ClusterClient,
  workloads: readonly Written[],
  notChecked: Set<string>,
  signal: AbortSignal,
): Promise<Stored<ResourceQuota>[]> {
  const read = namespacesOf(workloads).map(async (namespace) => {
    try {
      return await listAll(host, QUOTAS, { namespace, signal });
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      notChecked.add(`quotas of namespace ${namespace} for more than one pod: you may not list resourcequotas`);
      return [];
    }
  });
  return (await Promise.all(read)).flat();
}

/** Reads which of the objects that pods name the host lacks. */
async function readAbsent(
  host: ClusterClient,
  workloads: readonly Written[],
  notChecked: Set<string>,
  signal: AbortSignal,
): Promise<DependencyKey[]> {
  const keys = new Set(
    workloads.flatMap(({ namespace, pods: { spec } }) => dependencyKeys({ metadata: { namespace }, spec })),
  );
  const absent = [...keys].map(async (key) => {
    const { kind, namespace, name } = dependencyRef(key);
    const { plural } = DEPENDENCIES[kind].resource;
    try {
      const found = await host.find(DEPENDENCIES[kind].resource, isClass(kind) ? { name } : { namespace, name }, {
        signal,
      });
      return found === undefined ? [key] : [];
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      // The API server itself looks for accounts and classes.
      if (kind === "ConfigMap" || kind === "Secret") {
        notChecked.add(`${plural} of namespace ${namespace} that pods name: you may not get ${plural}`);
      }
      return [];
    }
  });
  return (await Promise.all(absent)).flat();
}

/** Returns the keys of the manifest's objects that pods may name. */
function keysOf(objects: readonly WrittenObject[], current: string): ReadonlySet<DependencyKey> {
  const keys = objects.flatMap(({ apiVersion, kind: written, metadata: { name = "", namespace = current } }) => {
    const kind = [...NAMESPACED_KINDS, ...CLASS_KINDS].find((known) => known === written);
    if (kind === undefined || apiVersionOf(DEPENDENCIES[kind].resource) !== apiVersion) return [];
    return [dependencyKey({ kind, namespace: isClass(kind) ? "" : namespace, name })];
  });
  return new Set(keys);
}

/** Lists a resource that an installation of an earlier version lacks. */
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
