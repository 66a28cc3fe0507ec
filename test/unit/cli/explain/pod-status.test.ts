import { expect, test } from "vitest";
import type { Pod } from "../../../../src/api/kubernetes.ts";
import { kubectlStatus } from "../../../../src/cli/explain/pod-status.ts";
import { containerStatus, endedStatus, pod, runningStatus } from "../../../support/builders/pod.ts";

const waiting = (reason: string, message?: string) =>
  containerStatus({ state: { waiting: { reason, ...(message === undefined ? {} : { message }) } } });

// The words of kubectl's printer (k8s.io/kubernetes/pkg/printers/internalversion).
test.each<[string, Pod]>([
  ["Running", pod({ spec: { nodeName: "legation-west" }, status: runningStatus() })],
  ["Pending", pod({})],
  ["SchedulingGated", pod({ spec: { schedulingGates: [{ name: "wait" }] } })],
  ["Completed", pod({ status: endedStatus(0) })],
  ["Error", pod({ status: endedStatus(1) })],
  ["Evicted", pod({ status: { phase: "Failed", reason: "Evicted" } })],
  ["Terminating", pod({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: runningStatus() })],
  ["Unknown", pod({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { reason: "NodeLost" } })],
  ["ImagePullBackOff", pod({ status: { phase: "Pending", containerStatuses: [waiting("ImagePullBackOff")] } })],
  [
    "Init:0/2",
    pod({
      status: { phase: "Pending", initContainerStatuses: [waiting("PodInitializing"), waiting("PodInitializing")] },
    }),
  ],
  [
    "Init:CrashLoopBackOff",
    pod({ status: { phase: "Pending", initContainerStatuses: [waiting("CrashLoopBackOff")] } }),
  ],
  [
    "PodInitializing",
    pod({
      status: {
        phase: "Pending",
        initContainerStatuses: [containerStatus({ state: { terminated: { exitCode: 0 } } })],
        containerStatuses: [waiting("PodInitializing")],
      },
    }),
  ],
  [
    "Signal:9",
    pod({
      status: {
        phase: "Failed",
        containerStatuses: [containerStatus({ state: { terminated: { exitCode: 137, signal: 9 } } })],
      },
    }),
  ],
  [
    "ExitCode:3",
    pod({
      status: { phase: "Failed", containerStatuses: [containerStatus({ state: { terminated: { exitCode: 3 } } })] },
    }),
  ],
])("shows %s as kubectl does", (status, shown) => {
  expect(kubectlStatus(shown)).toBe(status);
});

test("goes on to the containers once a sidecar has started", () => {
  const sidecar = containerStatus({ started: true, state: { running: {} } });
  const status = {
    phase: "Running",
    initContainerStatuses: [sidecar],
    containerStatuses: [containerStatus({ ready: true, state: { running: {} } })],
  };
  expect(kubectlStatus(pod({ status }))).toBe("Running");
});
