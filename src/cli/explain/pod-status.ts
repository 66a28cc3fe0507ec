import { byName } from "../../api/json.ts";
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";
import type { Replicas } from "../../placement/division.ts";
import { isBound, isDeleting, isGated, isTerminal } from "../../pods/pod-state.ts";

/** Returns the status as `kubectl get pods` prints it. */
export function kubectlStatus(pod: Pod): string {
  const { phase = "Unknown", reason, initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  if (isDeleting(pod)) return reason === "NodeLost" ? "Unknown" : isTerminal(pod) ? (reason ?? phase) : "Terminating";
  if (!isBound(pod) && isGated(pod)) return "SchedulingGated";
  const init = initContainerStatuses.findIndex((status) => !isInitDone(status));
  if (init >= 0 && !isTerminal(pod)) {
    const why = reasonOf(initContainerStatuses[init]);
    return why === undefined || why === "PodInitializing"
      ? `Init:${init}/${initContainerStatuses.length}`
      : `Init:${why}`;
  }
  // The last container with a reason tells it, as in kubectl.
  const why = containerStatuses.map(reasonOf).findLast((each) => each !== undefined);
  const isRunning = containerStatuses.some(({ ready, state }) => ready && state?.running !== undefined);
  if (why === "Completed" && isRunning) return "Running";
  return why ?? reason ?? phase;
}

/** Reports whether the next init container may run: sidecars only need to start. */
function isInitDone({ state, started }: ContainerStatus): boolean {
  return state?.terminated?.exitCode === 0 || (started === true && state?.running !== undefined);
}

function reasonOf(status: ContainerStatus | undefined): string | undefined {
  const { waiting, terminated } = status?.state ?? {};
  if (waiting?.reason) return waiting.reason;
  if (terminated === undefined) return undefined;
  if (terminated.reason) return terminated.reason;
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`;
}

/** Counts how often each of some words occurs. */
export function countBy(words: readonly string[]): Replicas {
  const counts: Record<string, number> = byName();
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
