import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION, MEMBER_NODE_ANNOTATION } from "../../api/keys.ts";
import type { Container, ContainerStatus, Pod, Stored } from "../../api/kubernetes.ts";

const ANNOTATIONS: ReadonlySet<string> = new Set([CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION, MEMBER_NODE_ANNOTATION]);
const LABELS: ReadonlySet<string> = new Set(["pod-template-hash"]);
const METADATA = keys(
  "name namespace uid resourceVersion creationTimestamp deletionTimestamp ownerReferences annotations labels",
);
const SPEC = keys("nodeName schedulingGates containers initContainers overhead resources schedulerName");
const STATUS = keys("phase reason message conditions containerStatuses initContainerStatuses");
const CONTAINER = keys("name resources restartPolicy");
const CONTAINER_STATUS = keys("name ready started restartCount state");
// Conditions that say why a pod waits, before and after it is bound.
const CONDITIONS = keys("PodScheduled PodReadyToStartContainers");

function keys(names: string): ReadonlySet<string> {
  return new Set(names.split(" "));
}

/** Drops the parts of a pod that rows do not show and members' sums do not count, which are most of it. Mutates the pod. */
export function withoutUnread(pod: Stored<Pod>): Stored<Pod> {
  const { metadata, spec, status } = pod;
  keep(metadata, METADATA);
  keep(metadata.annotations, ANNOTATIONS);
  keep(metadata.labels, LABELS);
  keep(spec, SPEC);
  for (const container of [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])]) {
    keep<Container>(container, CONTAINER);
  }
  keep(status, STATUS);
  if (status?.conditions !== undefined)
    status.conditions = status.conditions.filter(({ type }) => CONDITIONS.has(type));
  for (const each of [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])]) {
    keep<ContainerStatus>(each, CONTAINER_STATUS);
  }
  return pod;
}

function keep<T extends object>(object: T | undefined, names: ReadonlySet<string>): void {
  if (object === undefined) return;
  for (const name of Object.keys(object)) if (!names.has(name)) Reflect.deleteProperty(object, name);
}
