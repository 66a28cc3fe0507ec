import type { ClusterQueue } from "../../../src/api/kueue.ts";
import { clusterQueues } from "../../../src/api/resources.ts";
import { resourceOf } from "../../../src/kube/optional-resource.ts";
import type { Resource } from "../../../src/kube/resources.ts";

const V1BETA2 = "kueue.x-k8s.io/v1beta2";

export const queuesV1beta2: Resource<ClusterQueue> = resourceOf(clusterQueues, { apiVersion: V1BETA2 });

/** A ResourceFlavor whose pods get the labels as node selector. */
export function flavor(name: string, nodeLabels: Readonly<Record<string, string>>): object {
  return { apiVersion: V1BETA2, kind: "ResourceFlavor", metadata: { name }, spec: { nodeLabels } };
}

/** A ClusterQueue for all namespaces, with quotas by flavor and resource. */
export function clusterQueue(
  name: string,
  quotas: Readonly<Record<string, Readonly<Record<string, string>>>>,
  {
    annotations = {},
    spec = {},
  }: { readonly annotations?: Readonly<Record<string, string>>; readonly spec?: object } = {},
): object {
  const flavors = Object.entries(quotas).map(([flavorName, resources]) => ({
    name: flavorName,
    resources: Object.entries(resources).map(([resource, nominalQuota]) => ({ name: resource, nominalQuota })),
  }));
  const coveredResources = Object.keys(Object.values(quotas)[0] ?? {});
  return {
    apiVersion: V1BETA2,
    kind: "ClusterQueue",
    metadata: { name, annotations },
    spec: { namespaceSelector: {}, resourceGroups: [{ coveredResources, flavors }], ...spec },
  };
}

/** A LocalQueue of the ClusterQueue's name. */
export function localQueue(namespace: string, name: string): object {
  return { apiVersion: V1BETA2, kind: "LocalQueue", metadata: { namespace, name }, spec: { clusterQueue: name } };
}

/** Returns the quotas that the queue has now, by flavor. */
export function quotasOf({ spec }: ClusterQueue): Readonly<Record<string, Readonly<Record<string, string>>>> {
  const flavors = (spec?.resourceGroups ?? []).flatMap((group) => group.flavors ?? []);
  return Object.fromEntries(
    flavors.map(({ name, resources = [] }) => [
      name,
      Object.fromEntries(resources.map((quota) => [quota.name, String(quota.nominalQuota)])),
    ]),
  );
}
