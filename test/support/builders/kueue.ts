import type { Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterQueue, LocalQueue, ResourceFlavor } from "../../../src/api/kueue.ts";
import type { KueueCondition, Workload } from "../../../src/api/kueue-workload.ts";

const AT = "2026-01-01T00:00:00Z";

/** A ClusterQueue as its API server has it: quotas and what is used, of cpu by flavor. */
export function storedQueue(
  name: string,
  cpu: Readonly<Record<string, { readonly used: string; readonly nominal: string }>>,
  { spec, status, annotations = {} }: { spec?: object; status?: object; annotations?: Record<string, string> } = {},
): Stored<ClusterQueue> {
  const of = <T>(value: (quota: { readonly used: string; readonly nominal: string }) => T) =>
    Object.entries(cpu).map(([flavor, quota]) => ({ name: flavor, resources: [{ name: "cpu", ...value(quota) }] }));
  return {
    metadata: { name, annotations, uid: `queue-${name}`, resourceVersion: "1" },
    spec: { resourceGroups: [{ flavors: of(({ nominal }) => ({ nominalQuota: nominal })) }], ...spec },
    status: { flavorsReservation: of(({ used }) => ({ total: used })), pendingWorkloads: 1, ...status },
  };
}

/** A flavor whose pods go to the member of its name. */
export function storedFlavor(name: string): Stored<ResourceFlavor> {
  const nodeLabels = { "legation.dev/cluster": name };
  return { metadata: { name, uid: `flavor-${name}`, resourceVersion: "1" }, spec: { nodeLabels } };
}

/** A LocalQueue `queue` of a namespace. */
export function storedLocalQueue(namespace: string, clusterQueue: string): Stored<LocalQueue> {
  return {
    metadata: { namespace, name: "queue", uid: `local-${namespace}`, resourceVersion: "1" },
    spec: { clusterQueue },
  };
}

/** A Workload of a Job in LocalQueue `queue`, which asks for 4 cores. */
export function storedWorkload(
  namespace: string,
  job: string,
  {
    created = AT,
    conditions = [],
    ...parts
  }: {
    readonly created?: string;
    readonly conditions?: readonly KueueCondition[];
    readonly spec?: NonNullable<Workload["spec"]>;
    readonly status?: NonNullable<Workload["status"]>;
  } = {},
): Stored<Workload> {
  const owner = { apiVersion: "batch/v1", kind: "Job", name: job, uid: `job-${job}`, controller: true };
  const name = `job-${job}-12345`;
  return {
    metadata: {
      namespace,
      name,
      uid: name,
      resourceVersion: "1",
      creationTimestamp: created,
      ownerReferences: [owner],
    },
    spec: { queueName: "queue", ...parts.spec },
    status: { resourceRequests: [{ resources: { cpu: "4" } }], conditions, ...parts.status },
  };
}
