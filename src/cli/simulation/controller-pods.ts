import { createHash } from "node:crypto";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { apiVersionOf } from "../../kube/resources.ts";
import { controllerOf } from "../../pods/pod-state.ts";
import type { ClaimTemplate } from "../../simulation/claims.ts";
import { isWorkloadKind, WORKLOAD_RESOURCES, type WorkloadKind, type WorkloadPods } from "./workloads.ts";

export interface NamedWorkload {
  readonly kind: WorkloadKind;
  readonly namespace: string;
  readonly name: string;
}

export interface PodController {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

// Stands in for the hash that a controller makes up.
const HASH = "planned";

export function podOf(
  workload: NamedWorkload,
  pods: WorkloadPods,
  index: number,
  owner: PodController = ownerOf(workload),
): Stored<Pod> {
  const { kind, namespace } = workload;
  const { metadata, spec, indexed, claims } = pods;
  const name = podName(workload, owner.name, index, indexed);
  const apiVersion = isWorkloadKind(owner.kind) ? apiVersionOf(WORKLOAD_RESOURCES[owner.kind]) : "v1";
  const controller = { apiVersion, blockOwnerDeletion: true, controller: true, ...owner };
  const written = (spec.volumes ?? []).filter((volume) => !claims.some((claim) => claim.name === volume.name));
  const claimed = claims.map((claim) => ({
    name: claim.name,
    persistentVolumeClaim: { claimName: claimName(workload, claim, index) },
  }));
  const volumes = [...written, ...claimed];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...controllerLabels(workload, owner, index) },
      name,
      namespace,
      uid: `planned/${kind}/${namespace}/${name}`,
      resourceVersion: "0",
      ...(kind === "Pod" ? {} : { ownerReferences: [controller] }),
    },
    spec: { ...spec, ...(volumes.length === 0 ? {} : { volumes }) },
  };
}

/** Returns the claims that the StatefulSet controller creates before pod `index`. */
export function claimsOf(workload: NamedWorkload, { claims }: WorkloadPods, index: number): ClaimTemplate[] {
  return claims.map((claim) => ({ ...claim, name: claimName(workload, claim, index) }));
}

function claimName({ name }: NamedWorkload, claim: ClaimTemplate, index: number): string {
  return `${claim.name}-${name}-${index}`;
}

function ownerOf({ kind, namespace, name }: NamedWorkload): PodController {
  // A Job's controller writes its uid into a label of pods, where no slash may stand.
  const uid = createHash("sha256").update(`${kind}/${namespace}/${name}`).digest("hex").slice(0, 36);
  if (kind === "Deployment") return { kind: "ReplicaSet", name: `${name}-${HASH}`, uid };
  return kind === "CronJob" ? { kind: "Job", name: `${name}-${HASH}`, uid } : { kind, name, uid };
}

function podName({ kind, name }: NamedWorkload, owner: string, index: number, indexed: boolean): string {
  if (kind === "Pod") return name;
  if (kind === "StatefulSet") return `${name}-${index}`;
  return indexed ? `${owner}-${index}-*` : `${owner}-*${index}`;
}

function controllerLabels({ kind, name }: NamedWorkload, owner: PodController, index: number): Record<string, string> {
  switch (kind) {
    case "Deployment":
      return { "pod-template-hash": owner.name.slice(name.length + 1) };
    case "StatefulSet":
      return {
        "statefulset.kubernetes.io/pod-name": `${name}-${index}`,
        "apps.kubernetes.io/pod-index": String(index),
      };
    case "Job":
    case "CronJob":
      return {
        "job-name": owner.name,
        "batch.kubernetes.io/job-name": owner.name,
        "controller-uid": owner.uid,
        "batch.kubernetes.io/controller-uid": owner.uid,
      };
    default:
      return {};
  }
}

/** Reports whether a controller makes the workload's pods, by the names that Kubernetes' controllers give. */
export function isMakerOf(
  { kind, name }: NamedWorkload,
  { kind: makerKind, name: makerName = "" }: { readonly kind?: string; readonly name?: string },
): boolean {
  if (makerKind === kind) return makerName === name;
  const suffix = makerName.startsWith(`${name}-`) ? makerName.slice(name.length + 1) : "";
  if (kind === "Deployment") return makerKind === "ReplicaSet" && /^[a-z0-9]{1,10}$/.test(suffix);
  return kind === "CronJob" && makerKind === "Job" && /^\d+$/.test(suffix);
}

/** Reports whether the pod is the workload's, by the name of its controller. */
export function isPodOf(workload: NamedWorkload, pod: Stored<Pod>): boolean {
  const { kind, namespace, name } = workload;
  const { metadata } = pod;
  if (metadata.namespace !== namespace) return false;
  const owner = controllerOf(pod);
  if (owner === undefined) return kind === "Pod" && metadata.name === name;
  if (kind === "Deployment" && owner.name !== `${name}-${metadata.labels?.["pod-template-hash"]}`) return false;
  return isMakerOf(workload, owner);
}

/** Returns the controller that makes the workload's next pod, by its present pods; undefined without any. */
export function makerOf(pods: readonly Stored<Pod>[]): PodController | undefined {
  const ageOf = ({ metadata }: Stored<Pod>): number => Date.parse(metadata.creationTimestamp ?? "") || 0;
  const [newest] = pods.toSorted((a, b) => ageOf(b) - ageOf(a));
  return newest && controllerOf(newest);
}

/** Returns the first ordinal that no pod of a StatefulSet has. */
export function missingOrdinal(pods: readonly Stored<Pod>[], firstOrdinal: number): number {
  const there = new Set(pods.map(({ metadata: { name } }) => Number(name.slice(name.lastIndexOf("-") + 1))));
  let ordinal = firstOrdinal;
  while (there.has(ordinal)) ordinal += 1;
  return ordinal;
}
