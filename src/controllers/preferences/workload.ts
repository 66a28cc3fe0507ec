import type { Pod, Stored } from "../../api/kubernetes.ts";
import { controllerOf } from "../../pods/pod-state.ts";

export interface Updated {
  readonly kind: "Deployment" | "Rollout";
  readonly name: string;
}

// Labels of pods by kind. The value is the end of their ReplicaSet's name.
const HASH_LABELS: readonly (readonly [Updated["kind"], string])[] = [
  ["Deployment", "pod-template-hash"],
  ["Rollout", "rollouts-pod-template-hash"],
];

/** The ReplicaSets of a workload must not each begin with another cluster. */
export function workloadOf(pod: Stored<Pod>): string {
  const { metadata } = pod;
  return updatedOf(pod)?.name ?? `${metadata.namespace}/${controllerOf(pod)?.name ?? metadata.name}`;
}

export function updatedOf({ metadata }: Stored<Pod>): Updated | undefined {
  const { kind: ownerKind, name = "" } = controllerOf({ metadata }) ?? {};
  if (ownerKind !== "ReplicaSet") return undefined;
  for (const [kind, label] of HASH_LABELS) {
    const hash = metadata.labels?.[label];
    if (!hash || !name.endsWith(`-${hash}`)) continue;
    return { kind, name: `${metadata.namespace}/${name.slice(0, -hash.length - 1)}` };
  }
  return undefined;
}
