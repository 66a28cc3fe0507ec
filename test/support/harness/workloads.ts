import type { KubeObject, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import { pods, type Resource } from "../../../src/kube/resources.ts";

/** A workload of any kind as a test reads it. */
export interface Workload extends KubeObject {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

const apps = { group: "apps", version: "v1", namespaced: true } as const;
const batch = { group: "batch", version: "v1", namespaced: true } as const;

/** The kinds whose controllers make pods, themselves or one through the other. */
export const WORKLOADS: readonly Resource<Workload>[] = [
  { ...apps, plural: "deployments", kind: "Deployment" },
  { ...apps, plural: "replicasets", kind: "ReplicaSet" },
  { ...apps, plural: "statefulsets", kind: "StatefulSet" },
  { ...batch, plural: "jobs", kind: "Job" },
  { ...batch, plural: "cronjobs", kind: "CronJob" },
  { group: "", version: "v1", namespaced: true, plural: "replicationcontrollers", kind: "ReplicationController" },
];

/** The resource of a workload or pod by its kind; throws for others. */
function resourceOf(kind: string | undefined): Resource<KubeObject> {
  const found = [...WORKLOADS, pods].find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no test makes a ${kind}`);
  return found;
}

/** Creates the objects in a namespace, in their order. */
export async function createIn(
  client: ClusterClient,
  namespace: string,
  objects: readonly KubeObject[],
): Promise<Stored<KubeObject>[]> {
  const made: Stored<KubeObject>[] = [];
  for (const object of objects) {
    const metadata = { ...object.metadata, namespace };
    made.push(await client.create(resourceOf(object.kind), { ...object, metadata }));
  }
  return made;
}

/** Deletes the objects of a namespace, and what they own; those that are gone are no error. */
export async function deleteFrom(
  client: ClusterClient,
  namespace: string,
  objects: readonly KubeObject[],
): Promise<void> {
  for (const { kind, metadata } of objects) {
    const ref = { namespace, name: metadata?.name ?? "" };
    try {
      await client.delete(resourceOf(kind), ref, { propagationPolicy: "Background", gracePeriodSeconds: 0 });
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
    }
  }
}

/** Changes one workload by a merge patch. */
export async function change(
  client: ClusterClient,
  namespace: string,
  [kind, name]: readonly [kind: string, name: string],
  body: object,
): Promise<void> {
  await client.patch(resourceOf(kind), { namespace, name }, { type: "merge", body });
}
