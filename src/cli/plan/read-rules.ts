import type { KubeObject, LimitRange, ResourceQuota, Stored } from "../../api/kubernetes.ts";
import { RESOURCES } from "../../controllers/dependencies/digest.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { priorityClasses, type Resource, runtimeClasses } from "../../kube/resources.ts";
import { type DependencyKey, dependenciesOf, dependencyKey, dependencyRef } from "../../pods/dependencies.ts";
import type { WrittenObject } from "./documents.ts";
import type { HostRules } from "./host-admission.ts";
import { podsOf, workloadKind } from "./workloads.ts";

const core = { group: "", version: "v1", namespaced: true } as const;
const QUOTAS: Resource<ResourceQuota> = { ...core, plural: "resourcequotas", kind: "ResourceQuota" };
const LIMIT_RANGES: Resource<LimitRange> = { ...core, plural: "limitranges", kind: "LimitRange" };

/**
 * Reads what else the pods of a manifest depend on: of ConfigMaps and Secrets those alone that pods name, and classes only where
 * one is named. What the person may not read is said, and taken for granted.
 */
export async function readRules(
  host: ClusterClient,
  objects: readonly WrittenObject[],
  current: string,
  signal: AbortSignal,
): Promise<HostRules> {
  const pods = objects.flatMap((object) => {
    const kind = workloadKind(object);
    if (kind === undefined || kind === "DaemonSet") return [];
    return [{ metadata: { namespace: object.metadata.namespace ?? current }, spec: podsOf(object, kind).spec }];
  });
  const unread = new Set<string>();
  const readable = async <T>(what: string, reading: Promise<T>): Promise<T | undefined> => {
    try {
      return await reading;
    } catch (error) {
      if (!isKubeError(error, "Forbidden")) throw error;
      unread.add(
        `${what} cannot be read with these credentials: that pods have what they need of them is taken for granted`,
      );
      return undefined;
    }
  };
  const listIn = async <T extends KubeObject>(resource: Resource<T>): Promise<Stored<T>[]> => {
    const namespaces = [...new Set(pods.map(({ metadata }) => metadata.namespace))];
    const found = namespaces.map((namespace) =>
      readable(`${resource.plural} in namespace ${namespace}`, listAll(host, resource, { namespace, signal })),
    );
    return (await Promise.all(found)).flatMap((items) => items ?? []);
  };
  const classes = async <T extends KubeObject>(resource: Resource<T>): Promise<Stored<T>[] | undefined> =>
    await readable(resource.plural, listAll(host, resource, { signal }));
  const keys = new Set(pods.flatMap((pod) => dependenciesOf(pod).map(dependencyKey)));
  const absent = async (key: DependencyKey): Promise<DependencyKey[]> => {
    const { kind, ...ref } = dependencyRef(key);
    const { plural } = RESOURCES[kind];
    const found = await readable(
      `${plural} in namespace ${ref.namespace}`,
      isThere(host, RESOURCES[kind], ref, signal),
    );
    return found === false ? [key] : [];
  };
  const [missing, quotas, limitRanges, priorities, runtimes] = await Promise.all([
    Promise.all([...keys].map(absent)),
    listIn(QUOTAS),
    listIn(LIMIT_RANGES),
    pods.some(({ spec }) => spec.priorityClassName !== undefined) ? classes(priorityClasses) : undefined,
    pods.some(({ spec }) => spec.runtimeClassName !== undefined) ? classes(runtimeClasses) : undefined,
  ]);
  return {
    missing: new Set(missing.flat()),
    quotas,
    limitRanges,
    priorityClasses: priorities,
    runtimeClasses: runtimes,
    unread: [...unread].sort(),
  };
}

async function isThere(
  host: ClusterClient,
  resource: Resource<KubeObject>,
  ref: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<boolean> {
  return (await host.find(resource, ref, { signal })) !== undefined;
}
