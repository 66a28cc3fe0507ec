import { withTransitionTime } from "../api/conditions.ts";
import { type ContainerStatus, type Pod, type PodCondition, type PodStatus, timestamp } from "../api/kubernetes.ts";

/** Returns the final status of a proxy whose delegate vanished, as TerminatePod in kubelet/status/status_manager.go. */
export function lostPodStatus(
  proxy: Pod,
  options: { readonly message: string; readonly disruptedBy?: string; readonly now: number },
): PodStatus {
  const at = timestamp(options.now);
  const status: Record<string, unknown> = { ...proxy.status, phase: "Failed", message: options.message };
  for (const [field, value] of Object.entries(endedStatuses(proxy, at))) if (value !== undefined) status[field] = value;
  status.conditions = endedConditions(proxy, at, options);
  if (options.disruptedBy !== undefined) status.reason = options.disruptedBy;
  return status as PodStatus;
}

function endedConditions(
  { status }: Pod,
  at: string,
  { message, disruptedBy }: { readonly message: string; readonly disruptedBy?: string },
): PodCondition[] {
  const conditions = new Map((status?.conditions ?? []).map((condition) => [condition.type, condition]));
  const set = (condition: PodCondition): void => {
    conditions.set(condition.type, withTransitionTime(condition, status?.conditions, at));
  };
  for (const type of ["Ready", "ContainersReady"]) set({ type, status: "False", reason: "PodFailed" });
  // An eviction has set its own reason.
  if (disruptedBy !== undefined && conditions.get("DisruptionTarget")?.status !== "True") {
    set({ type: "DisruptionTarget", status: "True", reason: disruptedBy, message });
  }
  return [...conditions.values()];
}

function endedStatuses(proxy: Pod, at: string): Record<string, ContainerStatus[] | undefined> {
  const { containerStatuses, initContainerStatuses, ephemeralContainerStatuses } = proxy.status ?? {};
  const tried = (initContainerStatuses ?? []).findLastIndex(hasBegun);
  const end = (status: ContainerStatus): ContainerStatus => ended(status, at);
  return {
    containerStatuses: hasInitialized(proxy) ? containerStatuses?.map(end) : containerStatuses,
    // The kubelet has always tried the first one.
    initContainerStatuses: initContainerStatuses?.map((status, index) =>
      index <= Math.max(0, tried) ? end(status) : status,
    ),
    ephemeralContainerStatuses: ephemeralContainerStatuses?.map((status) => (hasBegun(status) ? end(status) : status)),
  };
}

/** Reports whether initialization was done, as hasPodInitialized of the kubelet does. */
function hasInitialized({ spec, status }: Pod): boolean {
  if ((spec?.initContainers ?? []).length === 0) return true;
  const last = status?.initContainerStatuses?.at(-1);
  const exits = [last?.state?.terminated, last?.lastState?.terminated];
  return status?.containerStatuses?.some(hasBegun) === true || exits.some((exit) => exit?.exitCode === 0);
}

function hasBegun({ state, lastState }: ContainerStatus): boolean {
  return (state?.running ?? state?.terminated ?? lastState?.terminated) !== undefined;
}

function ended(status: ContainerStatus, at: string): ContainerStatus {
  const { state, containerID } = status;
  if (state?.terminated !== undefined) return status;
  const startedAt = state?.running?.startedAt;
  return {
    ...status,
    ready: false,
    started: false,
    state: {
      terminated: {
        exitCode: 137,
        reason: "ContainerStatusUnknown",
        message: "The container could not be located when the pod was terminated",
        ...(startedAt === undefined ? {} : { startedAt }),
        finishedAt: at,
        ...(containerID === undefined ? {} : { containerID }),
      },
    },
  };
}
