import type { ContainerStatus, Job, Pod } from "../../api/kubernetes.ts";
import { allStatuses, conditionOf, isTerminal } from "../../pods/pod-state.ts";

/** The annotation that kubectl reads, too. */
const DEFAULT_CONTAINER_ANNOTATION = "kubectl.kubernetes.io/default-container";

/** The containers whose logs the user wants: one by name, all, or each pod's default one. */
export interface ContainerChoice {
  readonly container?: string | undefined;
  readonly all: boolean;
}

/** Returns the names of a pod's containers: init containers first, debug containers last. */
export function containerNames({ spec }: Pod): string[] {
  const { initContainers = [], containers = [], ephemeralContainers = [] } = spec ?? {};
  return [...initContainers, ...containers, ...ephemeralContainers].map(({ name }) => name);
}

/** Returns the chosen containers of a pod, as kubectl chooses them. Empty if the pod lacks the one that is named. */
export function chosenContainers(pod: Pod, { container, all }: ContainerChoice): readonly string[] {
  const names = containerNames(pod);
  if (all) return names;
  if (container !== undefined) return names.filter((name) => name === container);
  const preferred = pod.metadata?.annotations?.[DEFAULT_CONTAINER_ANNOTATION];
  const name = preferred !== undefined && names.includes(preferred) ? preferred : pod.spec?.containers[0]?.name;
  return name === undefined ? [] : [name];
}

/**
 * - `none`: the container has not run, and may still
 * - `never`: its pod ended before it ran
 * - `growing`: it runs, or may run again
 * - `complete`: it does not run again
 */
export type LogState = "none" | "never" | "growing" | "complete";

export function logStateOf(pod: Pod, container: string): LogState {
  const { state, lastState } = statusOf(pod, container) ?? {};
  const hasRun = (state?.running ?? state?.terminated ?? lastState?.terminated) !== undefined;
  if (isTerminal(pod)) return hasRun ? "complete" : "never";
  if (!hasRun) return "none";
  const exitCode = state?.terminated?.exitCode;
  if (exitCode === undefined) return "growing";
  const policy = restartPolicyOf(pod, container);
  const restarts = policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
  return restarts ? "growing" : "complete";
}

/** Reports whether the container has a log. */
export function hasLog(pod: Pod, container: string): boolean {
  return ["growing", "complete"].includes(logStateOf(pod, container));
}

export function whyNoLog(pod: Pod, container: string): string {
  const { reason, message } = statusOf(pod, container)?.state?.waiting ?? {};
  const { phase = "Pending", reason: podReason, message: podMessage } = pod.status ?? {};
  const scheduled = conditionOf(pod, "PodScheduled");
  if (isTerminal(pod)) return `did not run; its pod is ${text(phase, podReason, podMessage)}`;
  if (reason !== undefined) return `waits to start: ${text(reason, message)}`;
  if (scheduled?.status === "False") return `waits to start: ${text(scheduled.reason, scheduled.message)}`;
  return "waits to start";
}

/** Reports whether the Job's spec asks for more than one pod. Retries may add pods to any Job. */
export function asksForSeveralPods({ spec }: Job): boolean {
  return (spec?.parallelism ?? 1) > 1 || (spec?.completions ?? 1) > 1;
}

function statusOf(pod: Pod, container: string): ContainerStatus | undefined {
  return allStatuses(pod).find(({ name }) => name === container);
}

function restartPolicyOf({ spec }: Pod, container: string): string | undefined {
  const own = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].find(({ name }) => name === container);
  return own?.restartPolicy ?? spec?.restartPolicy;
}

function text(...parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== "").join(": ");
}
