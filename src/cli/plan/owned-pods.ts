import type { Pod, Stored } from "../../api/kubernetes.ts";
import { controllerOf } from "../../pods/phase.ts";
import type { WorkloadKind } from "./workloads.ts";

/** A workload by its name. */
export interface NamedWorkload {
  readonly kind: WorkloadKind;
  readonly namespace: string;
  readonly name: string;
}

/** Whether a controller of this kind and name makes the workload's pods, by the names that Kubernetes' controllers give. */
export function isMakerOf(
  { kind, name }: NamedWorkload,
  maker: { readonly kind?: string; readonly name?: string },
): boolean {
  const { kind: makerKind, name: makerName = "" } = maker;
  if (makerKind === kind) return makerName === name;
  const suffix = makerName.startsWith(`${name}-`) ? makerName.slice(name.length + 1) : "";
  if (kind === "Deployment") return makerKind === "ReplicaSet" && /^[a-z0-9]{1,10}$/.test(suffix);
  return kind === "CronJob" && makerKind === "Job" && /^\d+$/.test(suffix);
}

/** Whether the pod is the workload's, by the names that Kubernetes' controllers give to what is between them. */
export function isPodOf({ kind, namespace, name }: NamedWorkload, pod: Stored<Pod>): boolean {
  const { metadata } = pod;
  if (metadata.namespace !== namespace) return false;
  const owner = controllerOf(pod);
  if (owner === undefined) return kind === "Pod" && metadata.name === name;
  switch (kind) {
    case "Deployment": {
      const hash = metadata.labels?.["pod-template-hash"];
      return owner.kind === "ReplicaSet" && hash !== undefined && owner.name === `${name}-${hash}`;
    }
    case "CronJob":
      // The scheduled minute, as a number.
      return (
        owner.kind === "Job" && owner.name.startsWith(`${name}-`) && /^\d+$/.test(owner.name.slice(name.length + 1))
      );
    default:
      return owner.kind === kind && owner.name === name;
  }
}
