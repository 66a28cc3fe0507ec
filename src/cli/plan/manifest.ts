import { z } from "zod";
import type { AnyObject } from "../../api/delegated-type.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { DEPENDENCIES } from "../../copies/dependencies.ts";
import {
  allDependenciesOf,
  type Dependency,
  type DependencyKey,
  dependencyKey,
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
import { withoutShape } from "../shared/delegated-types.ts";
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
  /** Objects that pods name, of the host or else the manifest. */
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
    const { namespace = current, generateName, name = `${generateName}*` } = object.metadata;
    const earlier = generated.get(`${kind}/${namespace}/${name}`) ?? 0;
    generated.set(`${kind}/${namespace}/${name}`, earlier + 1);
    const suffix = earlier > 0 && object.metadata.name === undefined ? earlier + 1 : "";
    return [{ kind, namespace, name: `${name}${suffix}`, object, pods: podsOf(object, kind) }];
  });
}

/** Returns the claims of a manifest. Throws a `Failure` that names a wrong field. */
export function claimsAmong(objects: readonly WrittenObject[], current: string): ManifestState["writtenClaims"] {
  return ofCore("PersistentVolumeClaim", objects).flatMap((object) => {
    const { name, namespace = current } = object.metadata;
    return name === undefined ? [] : [{ namespace, claim: { name, spec: writtenClaim(object) } }];
  });
}

interface Reading {
  readonly host: ClusterClient;
  readonly objects: readonly WrittenObject[];
  /** Namespace of objects that name none. */
  readonly current: string;
  readonly followed: readonly FollowedObjects[];
  readonly signal: AbortSignal;
}

/** Reads what the workloads of a manifest meet. Objects that the asker may not read are told in `notChecked`. */
export async function readManifestState(
  workloads: readonly WrittenWorkload[],
  reading: Reading,
): Promise<ManifestState> {
  const { host, objects, current, signal } = reading;
  const planned = workloads.filter(({ kind }) => kind !== "DaemonSet");
  const [existing, services, claims, named] = await Promise.all([
    readExisting(planned, reading),
    readServices(planned, reading),
    readClaims(host, planned, signal),
    readNamed(planned, reading),
  ]);
  const limits = [...ofCore("ResourceQuota", objects), ...ofCore("LimitRange", objects)];
  return {
    ...named,
    existing,
    services,
    claims,
    writtenClaims: claimsAmong(objects, current),
    notChecked: [
      ...named.notChecked,
      ...limits.map(
        ({ kind, metadata: { name, namespace = current } }) =>
          `${kind} ${namespace}/${name} of the manifest: pods are checked by those that the host has now`,
      ),
    ],
  };
}

/** Returns the objects of a kind of the core group. */
export function ofCore(kind: string, objects: readonly WrittenObject[]): WrittenObject[] {
  return objects.filter((object) => object.apiVersion === "v1" && object.kind === kind);
}

function namespacesOf(workloads: Iterable<NamedWorkload>): string[] {
  return [...new Set([...workloads].map(({ namespace }) => namespace))];
}

const writtenService: z.ZodType<Pick<ServiceObject, "spec">> = z.object({
  spec: z.object({ type: z.string(), selector: z.record(z.string(), z.string()) }).partial(),
});

/** A Service is a fact beside the plan: those that the account may not read are left out. */
async function readServices(
  workloads: readonly NamedWorkload[],
  { host, objects, current, signal }: Reading,
): Promise<ServiceObject[]> {
  const written = ofCore("Service", objects).map((object): ServiceObject => {
    const { name = "", namespace = current, annotations = {} } = object.metadata;
    return { metadata: { name, namespace, annotations }, ...readFields(writtenService, object) };
  });
  const lists = namespacesOf(workloads).map((namespace) =>
    readable(listAll(host, serviceResource, { namespace, signal })),
  );
  const stored = (await Promise.all(lists)).flatMap((found): ServiceObject[] => found ?? []);
  const all = [...stored, ...written];
  return [...new Map(all.map((each) => [`${each.metadata?.namespace}/${each.metadata?.name}`, each])).values()];
}

async function readExisting(
  workloads: readonly WrittenWorkload[],
  { host, signal }: Reading,
): Promise<Map<WrittenWorkload, Existing>> {
  const found = new Map<WrittenWorkload, WrittenObject>();
  const read = workloads.map(async (workload) => {
    // Each run of a CronJob has pods of its own, and a generated name is new.
    if (workload.kind === "CronJob" || workload.object.metadata.name === undefined) return;
    const stored = await readWorkloadObject(host, workload, signal);
    if (stored !== undefined) found.set(workload, stored);
  });
  await Promise.all(read);
  const lists = namespacesOf(found.keys()).map((namespace) => listAll(host, podResource, { namespace, signal }));
  const live = (await Promise.all(lists)).flat().filter(isLive);
  return new Map(
    [...found].map(([workload, stored]) => [workload, { stored, pods: live.filter((pod) => isPodOf(workload, pod)) }]),
  );
}

/** Reads the objects that pods name. */
async function readNamed(
  workloads: readonly WrittenWorkload[],
  { host, objects, current, followed, signal }: Reading,
): Promise<Pick<ManifestState, "objects" | "missing" | "created" | "notChecked">> {
  const asked = new Map<DependencyKey, { readonly named: Dependency; readonly resource: Resource<AnyObject> }>();
  for (const { namespace, pods } of workloads) {
    const pod = { metadata: { ...pods.metadata, namespace }, spec: pods.spec };
    for (const named of allDependenciesOf(pod)) {
      asked.set(dependencyKey(named), { named, resource: withoutShape(DEPENDENCIES[named.kind].resource) });
    }
    for (const type of followed) {
      for (const named of followedBy(pod, [type])) asked.set(dependencyKey(named), { named, resource: type.resource });
    }
  }
  const found = new Map<DependencyKey, Stored<AnyObject>>();
  const missing = new Set<DependencyKey>();
  const created = new Set<DependencyKey>();
  const unreadable = new Set<string>();
  const read = [...asked].map(async ([key, { named, resource }]) => {
    const { kind, namespace, name } = named;
    const written = objects.find(
      (object) =>
        object.kind === resource.kind &&
        object.apiVersion === apiVersionOf(resource) &&
        object.metadata.name === name &&
        (!resource.namespaced || (object.metadata.namespace ?? current) === namespace),
    );
    if (written !== undefined) {
      found.set(key, { ...written, metadata: { name, namespace, uid: key, resourceVersion: "" } });
    }
    try {
      const stored = await host.find(resource, { namespace, name }, { signal });
      if (stored !== undefined) found.set(key, stored);
      else (written === undefined ? missing : created).add(key);
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      // The API server itself looks for accounts and classes.
      if (isDependencyKind(kind) && kind !== "ConfigMap" && kind !== "Secret") return;
      const { plural } = resource;
      unreadable.add(`${plural} of namespace ${namespace} that pods name: you may not get ${plural}`);
    }
  });
  await Promise.all(read);
  return { objects: found, missing, created, notChecked: [...unreadable].sort() };
}
