import { z } from "zod";
import { defined } from "../../api/defined.ts";
import type { AnyObject } from "../../api/delegated-type.ts";
import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import { DEPENDENCIES } from "../../copies/dependencies.ts";
import {
  allDependenciesOf,
  type DependencyKey,
  dependencyKey,
  isClass,
  isDependencyKind,
} from "../../copies/named-by-pods.ts";
import type { ServiceObject } from "../../copies/services.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { apiVersionOf, pods as podResource, type Resource, services as serviceResource } from "../../kube/resources.ts";
import { isLive } from "../../pods/pod-state.ts";
import { type FollowedObjects, followedBy } from "../../scheduling/followed-objects.ts";
import type { ClaimsByNamespace, ClaimTemplate } from "../../simulation/claims.ts";
import { readFields, type WrittenObject } from "../shared/documents.ts";
import { readable } from "../shared/reading.ts";
import { isPodOf, type NamedWorkload } from "../simulation/controller-pods.ts";
import { readClaims, readWorkloadObject } from "../simulation/host-state.ts";
import { podsOf, type WorkloadPods, workloadKind, writtenClaim } from "../simulation/workloads.ts";

export interface WrittenWorkload extends NamedWorkload {
  readonly object: WrittenObject;
  /** The pods of the template, as written. */
  readonly pods: WorkloadPods;
}

/** A workload that the host has already. */
export interface Existing {
  readonly stored: WrittenObject;
  /** Pods that have neither ended nor are terminating. */
  readonly pods: readonly Stored<Pod>[];
}

export interface ManifestState {
  readonly existing: ReadonlyMap<WrittenWorkload, Existing>;
  readonly claims: ClaimsByNamespace;
  readonly writtenClaims: readonly { readonly namespace: string; readonly claim: ClaimTemplate }[];
  /** Objects that pods name by the rules of DelegatedTypes, of the host or else the manifest. */
  readonly objects: ReadonlyMap<DependencyKey, Stored<AnyObject>>;
  /** Objects that pods name and that neither the host nor the manifest has. */
  readonly missing: ReadonlySet<DependencyKey>;
  /** Objects that pods name and that the manifest creates. */
  readonly created: ReadonlySet<DependencyKey>;
  /** Services of the workloads' namespaces, of the manifest or else the host. */
  readonly services: readonly ServiceObject[];
  readonly notChecked: readonly string[];
}

/** Returns the workloads of a manifest; `current` is the namespace of objects that name none. Throws a `Failure` that names a wrong field. */
export function workloadsOf(objects: readonly WrittenObject[], current: string): WrittenWorkload[] {
  // The API server gives each generated name a different suffix.
  const generated = new Map<string, number>();
  return objects.flatMap((object) => {
    const kind = workloadKind(object);
    if (kind === undefined) return [];
    const { namespace = current, generateName = "" } = object.metadata;
    const prefix = `${kind}/${namespace}/${generateName}`;
    const earlier = generated.get(prefix) ?? 0;
    if (object.metadata.name === undefined) generated.set(prefix, earlier + 1);
    const { name = `${generateName}*${earlier === 0 ? "" : earlier + 1}` } = object.metadata;
    return [{ kind, namespace, name, object, pods: podsOf(object, kind) }];
  });
}

/** Returns the claims of a manifest. Throws a `Failure` that names a wrong field. */
export function claimsAmong(objects: readonly WrittenObject[], current: string): ManifestState["writtenClaims"] {
  return objects.flatMap((object) => {
    const { name, namespace = current } = object.metadata;
    if (object.apiVersion !== "v1" || object.kind !== "PersistentVolumeClaim" || name === undefined) return [];
    return [{ namespace, claim: { name, spec: writtenClaim(object) } }];
  });
}

/** Reads what the workloads of a manifest meet. Objects that the asker may not read are told in `notChecked`. */
export async function readManifestState(
  host: ClusterClient,
  objects: readonly WrittenObject[],
  workloads: readonly WrittenWorkload[],
  {
    current,
    followed,
    signal,
  }: { readonly current: string; readonly followed: readonly FollowedObjects[]; readonly signal: AbortSignal },
): Promise<ManifestState> {
  const planned = workloads.filter(({ kind }) => kind !== "DaemonSet");
  const [existing, services, claims, absent] = await Promise.all([
    readExisting(host, planned, signal),
    readServices(host, objects, planned, { current, signal }),
    readClaims(host, planned, signal),
    readAbsent(host, planned, followed, signal),
  ]);
  const written = dependenciesAmong(objects, current, followed);
  const isWritten = (key: DependencyKey): boolean => written.has(key);
  const limits = objects.filter(
    ({ apiVersion, kind }) => apiVersion === "v1" && /^(ResourceQuota|LimitRange)$/.test(kind),
  );
  return {
    existing,
    services,
    claims,
    writtenClaims: claimsAmong(objects, current),
    objects: new Map([...objectsAmong(written), ...absent.objects]),
    missing: new Set(absent.missing.filter((key) => !isWritten(key))),
    created: new Set(absent.missing.filter(isWritten)),
    notChecked: [
      ...absent.unreadable,
      ...limits.map(
        ({ kind, metadata: { name, namespace = current } }) =>
          `${kind} ${namespace}/${name} of the manifest: pods are checked by those that the host has now`,
      ),
    ],
  };
}

const writtenService: z.ZodType<Pick<ServiceObject, "spec">> = z.object({
  spec: z.object({ type: z.string(), selector: z.record(z.string(), z.string()) }).partial(),
});

/** A Service is a fact beside the plan: those that the account may not read are left out. */
async function readServices(
  host: ClusterClient,
  objects: readonly WrittenObject[],
  workloads: readonly NamedWorkload[],
  { current, signal }: { readonly current: string; readonly signal: AbortSignal },
): Promise<ServiceObject[]> {
  const written = objects
    .filter(({ apiVersion, kind }) => apiVersion === "v1" && kind === "Service")
    .map((object): ServiceObject => {
      const { name = "", namespace = current, annotations = {} } = object.metadata;
      return { metadata: { name, namespace, annotations }, ...readFields(writtenService, object) };
    });
  const keyOf = ({ metadata }: KubeObject): string => `${metadata?.namespace}/${metadata?.name}`;
  const known = new Set(written.map(keyOf));
  const namespaces = [...new Set(workloads.map(({ namespace }) => namespace))];
  const reading = namespaces.map((namespace) => readable(listAll(host, serviceResource, { namespace, signal })));
  const stored = (await Promise.all(reading)).flatMap((found) => found ?? []);
  return [...written, ...stored.filter((service) => !known.has(keyOf(service)))];
}

async function readExisting(
  host: ClusterClient,
  workloads: readonly WrittenWorkload[],
  signal: AbortSignal,
): Promise<Map<WrittenWorkload, Existing>> {
  const found = new Map<WrittenWorkload, WrittenObject>();
  const read = workloads.map(async (workload) => {
    // Each run of a CronJob has pods of its own, and a generated name is new.
    if (workload.kind === "CronJob" || workload.object.metadata.name === undefined) return;
    const stored = await readWorkloadObject(host, workload, signal);
    if (stored !== undefined) found.set(workload, stored);
  });
  await Promise.all(read);
  const namespaces = [...new Set([...found.keys()].map(({ namespace }) => namespace))];
  const pods = (
    await Promise.all(namespaces.map((namespace) => listAll(host, podResource, { namespace, signal })))
  ).flat();
  const ownPods = (workload: WrittenWorkload): Stored<Pod>[] =>
    pods.filter((pod) => isPodOf(workload, pod) && isLive(pod));
  return new Map([...found].map(([workload, stored]) => [workload, { stored, pods: ownPods(workload) }]));
}

/** Reads which of the objects that pods name the host has and lacks, and which the asker may not read. */
async function readAbsent(
  host: ClusterClient,
  workloads: readonly WrittenWorkload[],
  followed: readonly FollowedObjects[],
  signal: AbortSignal,
): Promise<{
  readonly missing: readonly DependencyKey[];
  readonly unreadable: readonly string[];
  /** Objects of types that follow pods. */
  readonly objects: ReadonlyMap<DependencyKey, Stored<AnyObject>>;
}> {
  const missing: DependencyKey[] = [];
  const objects = new Map<DependencyKey, Stored<AnyObject>>();
  const unreadable = new Set<string>();
  const asked = new Map<
    DependencyKey,
    { readonly resource: Resource<KubeObject>; readonly namespace?: string; readonly isThere: () => Promise<boolean> }
  >();
  for (const {
    namespace,
    pods: { metadata, spec },
  } of workloads) {
    const pod = { metadata: { ...metadata, namespace }, spec };
    for (const named of allDependenciesOf(pod)) {
      const { resource } = DEPENDENCIES[named.kind];
      const of = isClass(named.kind) ? {} : { namespace };
      const isThere = async (): Promise<boolean> =>
        (await host.find<KubeObject>(resource, { ...of, name: named.name }, { signal })) !== undefined;
      asked.set(dependencyKey(named), { resource, ...of, isThere });
    }
    for (const type of followed) {
      for (const named of followedBy(pod, [type])) {
        const key = dependencyKey(named);
        const isThere = async (): Promise<boolean> => {
          const object = await host.find(type.resource, named, { signal });
          if (object !== undefined) objects.set(key, object);
          return object !== undefined;
        };
        asked.set(key, { resource: type.resource, namespace, isThere });
      }
    }
  }
  const read = [...asked].map(async ([key, { resource, namespace, isThere }]) => {
    try {
      if (!(await isThere())) missing.push(key);
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      // The API server itself looks for accounts and classes.
      const { kind, plural } = resource;
      if (isDependencyKind(kind) && kind !== "ConfigMap" && kind !== "Secret") return;
      unreadable.add(`${plural} of namespace ${namespace} that pods name: you may not get ${plural}`);
    }
  });
  await Promise.all(read);
  return { missing, unreadable: [...unreadable].sort(), objects };
}

/** Returns what the manifest has of the objects that pods can name. */
function dependenciesAmong(
  objects: readonly WrittenObject[],
  current: string,
  followed: readonly FollowedObjects[],
): ReadonlyMap<DependencyKey, WrittenObject> {
  const found = objects.flatMap((object): [DependencyKey, WrittenObject][] => {
    const { apiVersion, kind, metadata } = object;
    const { name = "", namespace = current } = metadata;
    const type = followed.find(({ resource }) => resource.kind === kind && apiVersionOf(resource) === apiVersion);
    if (type !== undefined) return [[dependencyKey({ kind: type.type, namespace, name }), object]];
    if (!isDependencyKind(kind) || apiVersionOf(DEPENDENCIES[kind].resource) !== apiVersion) return [];
    return [[dependencyKey({ kind, namespace: isClass(kind) ? "" : namespace, name }), object]];
  });
  return new Map(found);
}

/** Returns the objects as the API server would store them, as far as their rules depend on it. */
function objectsAmong(written: ReadonlyMap<DependencyKey, WrittenObject>): [DependencyKey, Stored<AnyObject>][] {
  return [...written].map(([key, object]) => {
    const { name = "", namespace } = object.metadata;
    return [key, { spec: object.spec, metadata: { name, uid: key, resourceVersion: "", ...defined({ namespace }) } }];
  });
}
