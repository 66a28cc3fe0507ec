import type { NamespaceState } from "./final-state.ts";

/** Says whether a namespace has come to the state that is waited for. */
export type AtRest = (state: NamespaceState) => boolean;

/** Reports whether the workload has the condition. */
export function condition(type: string): AtRest {
  return ({ workloads }) => workloads.some(({ status }) => hasTrue(status?.conditions, type));
}

/** Requires at least one pod, and all in this phase. */
export function phase(wanted: string): AtRest {
  return ({ pods }) => pods.length > 0 && pods.every(({ status }) => status?.phase === wanted);
}

/** Requires at least one pod, and all with a node. */
export function scheduled({ pods }: NamespaceState): boolean {
  return pods.length > 0 && pods.every(({ spec }) => spec?.nodeName !== undefined);
}

/** Reports whether exactly this many pods of the image run, and the workload's status says so. */
export function ready(count: number, image = "main:1"): AtRest {
  return (state) =>
    state.pods.length === count &&
    phase("Running")(state) &&
    state.pods.every(({ spec }) => spec?.containers[0]?.image === image) &&
    state.workloads.every(({ metadata, status, spec }) => {
      const { observedGeneration, replicas = 0, readyReplicas = 0, availableReplicas = 0 } = status ?? {};
      const counts = [replicas, readyReplicas, availableReplicas];
      return observedGeneration === metadata.generation && counts.every((number) => number === spec?.replicas);
    });
}

/** Reports whether exactly this many pods of the Job run, and its status says so. */
export function jobRuns(count: number): AtRest {
  return ({ pods, workloads }) =>
    pods.filter(({ status }) => status?.phase === "Running").length === count && workloads[0]?.status?.ready === count;
}

function hasTrue(conditions: unknown, type: string): boolean {
  return Array.isArray(conditions) && conditions.some((item) => item.type === type && item.status === "True");
}
