import { DELEGATE_FINALIZER, PROXY_LABEL, PROXY_LABEL_VALUE, SCHEDULER_NAME } from "../../../src/api/keys.ts";
import type { ContainerStatus, ObjectMeta, Pod, PodSpec, PodStatus, Stored } from "../../../src/api/kubernetes.ts";

/** Overrides of the built pod's defaults. */
export interface PodParts {
  readonly name?: string;
  readonly uid?: string;
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec?: Partial<PodSpec>;
  readonly status?: PodStatus;
}

/** A pod as an API server holds it: one container `main`, phase Pending. */
export function pod({ name = "web-0", uid = "uid-1", metadata, spec, status }: PodParts = {}): Stored<Pod> {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace: "team", name, uid, resourceVersion: "1", ...metadata },
    spec: { containers: [{ name: "main", image: "busybox" }], ...spec },
    status: status ?? { phase: "Pending" },
  };
}

/** A proxy as admission leaves it. */
export function proxyPod({ metadata, spec, ...parts }: PodParts = {}): Stored<Pod> {
  return pod({
    ...parts,
    metadata: {
      finalizers: [DELEGATE_FINALIZER],
      ...metadata,
      labels: { [PROXY_LABEL]: PROXY_LABEL_VALUE, ...metadata?.labels },
    },
    spec: { schedulerName: SCHEDULER_NAME, ...spec },
  });
}

/** The status of a pod whose one container runs. */
export function runningStatus(): PodStatus {
  return {
    phase: "Running",
    conditions: [{ type: "Ready", status: "True" }],
    containerStatuses: [containerStatus({ state: { running: { startedAt: "2026-01-01T00:00:00Z" } }, ready: true })],
    podIP: "10.1.0.7",
    podIPs: [{ ip: "10.1.0.7" }],
  };
}

/** The status of a pod whose one container has ended. */
export function endedStatus(exitCode: number): PodStatus {
  const terminated = { exitCode, reason: exitCode === 0 ? "Completed" : "Error" };
  return {
    phase: exitCode === 0 ? "Succeeded" : "Failed",
    containerStatuses: [containerStatus({ state: { terminated } })],
  };
}

/** A container status, by default of `main` and waiting. */
export function containerStatus(parts: Partial<ContainerStatus> = {}): ContainerStatus {
  return { name: "main", image: "busybox", imageID: "", ready: false, restartCount: 0, ...parts };
}
