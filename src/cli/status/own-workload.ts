import type { KubeObject, ObjectMeta, Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { controllerOf } from "../../pods/phase.ts";
import { readable } from "../member/joined.ts";
import { objectOf } from "../plan/documents.ts";
import { outerMetadata, podsOf, WORKLOAD_RESOURCES, workloadKind } from "../plan/workloads.ts";
import type { OwnWorkload } from "./not-delegated.ts";

// A pod is of a ReplicaSet, and that of a Deployment; of a Job, and that of a CronJob. Owners that somebody wrote may go round in a circle.
const LEVELS = 2;

/**
 * The outermost of Kubernetes' own workloads that a pod is of, which is the one that authors annotate. Undefined for a pod that has
 * none, and where it is gone or may not be read. Rejects with KubeError.
 */
export async function readOwnWorkload(
  client: ClusterClient,
  pod: Stored<Pod>,
  signal: AbortSignal,
): Promise<OwnWorkload | undefined> {
  const { namespace = "" } = pod.metadata;
  let found: OwnWorkload | undefined;
  let metadata: ObjectMeta = pod.metadata;
  for (let level = 0; level < LEVELS; level++) {
    const owner = controllerOf({ metadata });
    const kind = owner === undefined ? undefined : workloadKind(owner);
    // A pod that makes pods (Spark's drivers) has no template: what it asks for itself says nothing of them.
    if (owner === undefined || kind === undefined || kind === "Pod") return found;
    const { name } = owner;
    const reading = client.find(WORKLOAD_RESOURCES[kind], { namespace, name }, { signal });
    const stored: Stored<KubeObject> | undefined = await readable(reading);
    if (stored?.metadata.uid !== owner.uid) return found;
    const object = objectOf(stored, `${kind} ${namespace}/${name}`);
    const { metadata: template, paused } = podsOf(object, kind);
    found = { kind, name, metadata: outerMetadata(object, kind), template, paused };
    metadata = stored.metadata;
  }
  return found;
}
