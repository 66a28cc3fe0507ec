import type { Pod, Stored } from "../../api/kubernetes.ts";
import { controllerOf } from "../../pods/phase.ts";

const TEMPLATE_HASH_LABEL = "pod-template-hash";

/** Name of what the author wrote: a Deployment's ReplicaSets must not each begin with another cluster. */
export function workloadOf(pod: Stored<Pod>): string {
  const { metadata } = pod;
  return deploymentOf(pod) ?? `${metadata.namespace}/${controllerOf(pod)?.name ?? metadata.name}`;
}

/** `namespace/name` of the Deployment whose ReplicaSet owns the pod; undefined when none does. */
export function deploymentOf({ metadata }: Stored<Pod>): string | undefined {
  const { kind, name = "" } = controllerOf({ metadata }) ?? {};
  const hash = metadata.labels?.[TEMPLATE_HASH_LABEL];
  if (kind !== "ReplicaSet" || hash === undefined || !name.endsWith(`-${hash}`)) return undefined;
  return `${metadata.namespace}/${name.slice(0, -hash.length - 1)}`;
}
