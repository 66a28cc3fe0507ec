import type { Stored } from "../../../../src/api/kubernetes.ts";
import type { CheckEntry, KueueCondition, PodSet, Workload } from "../../../../src/api/kueue-workload.ts";

export const AT = "2026-01-01T00:00:00Z";
export const NOW: number = Date.parse(AT);

/** Parts of a built Workload. */
export interface WorkloadParts {
  readonly uid?: string;
  readonly podSets?: readonly PodSet[];
  readonly priority?: number;
  readonly createdAt?: string;
  readonly entries?: readonly CheckEntry[];
  /** Types of conditions that are True, beside QuotaReserved. */
  readonly conditions?: readonly string[];
  readonly spec?: Partial<NonNullable<Workload["spec"]>>;
  readonly status?: Partial<NonNullable<Workload["status"]>>;
}

/** A Workload of namespace `team` with quota, whose check `room` is pending. */
export function workload(name: string, parts: WorkloadParts = {}): Stored<Workload> {
  const { uid = `uid-of-${name}`, podSets = [podSet()], priority, createdAt = AT, conditions = [] } = parts;
  const owner = { apiVersion: "batch/v1", kind: "Job", name, uid: `job-${name}`, controller: true };
  return {
    metadata: {
      namespace: "team",
      name,
      uid,
      resourceVersion: "1",
      creationTimestamp: createdAt,
      ownerReferences: [owner],
    },
    spec: { podSets, ...(priority === undefined ? {} : { priority }), ...parts.spec },
    status: {
      admission: { podSetAssignments: podSets.map((set) => ({ name: set.name, count: set.count })) },
      conditions: ["QuotaReserved", ...conditions].map((type) => isTrue(type)),
      admissionChecks: parts.entries ?? [entry()],
      ...parts.status,
    },
  };
}

export function isTrue(type: string, lastTransitionTime: string = AT): KueueCondition {
  return { type, status: "True", reason: type, message: "", lastTransitionTime };
}

export function entry(parts: Partial<CheckEntry> = {}): CheckEntry {
  return { name: "room", state: "Pending", message: "", lastTransitionTime: AT, ...parts };
}

/** A pod set of pods that ask for delegation, each with 1 core unless `cpu` says otherwise. */
export function podSet(parts: Partial<PodSet> & { readonly cpu?: string } = {}): PodSet {
  const { cpu = "1", ...rest } = parts;
  return {
    name: "main",
    count: 1,
    template: {
      metadata: { annotations: { "legation.dev/delegate": "true" } },
      spec: { containers: [{ name: "main", image: "main:1", resources: { requests: { cpu } } }] },
    },
    ...rest,
  };
}
