import { ADDED_CONDITION } from "../api/keys.ts";
import type { Container, ContainerStatus, Pod, PodCondition, Stored } from "../api/kubernetes.ts";
import { conditionOf, isTerminal } from "./pod-state.ts";

/** The reason of the condition while an added container fails. */
export const ADDED_CONTAINER_FAILING = "ContainerFailing";
const NOT_READY = "ContainerNotReady";
const ADDED = "ContainerAdded";

// Bounds the proxy: a pod may have hundreds of containers.
const LONGEST_MESSAGE = 1_024;
// Waiting reasons of every starting container.
const STARTING: ReadonlySet<string> = new Set(["ContainerCreating", "PodInitializing"]);

interface AddedContainer {
  readonly name: string;
  /** A plain init container runs to its end, and is not ready before. */
  readonly isPlainInit: boolean;
  readonly status: ContainerStatus | undefined;
}

/**
 * Returns the condition that names the containers of a delegate that its proxy lacks, since the member's admission or an override
 * added them, with the state of those that are not well. Undefined if there are none. The proxy's statuses show its own alone.
 */
export function addedCondition(proxy: Pod, delegate: Stored<Pod>): PodCondition | undefined {
  const shown = conditionOf(proxy, ADDED_CONDITION);
  // Containers that are stopped fail in many ways.
  if (delegate.metadata.deletionTimestamp !== undefined && !isTerminal(delegate)) return shown;
  const containers = addedContainers(proxy, delegate);
  if (containers.length === 0) return undefined;
  const isFinished = delegate.status?.phase === "Succeeded";
  const states = containers.map(({ name, ...container }) => ({ name, ...stateOf(container, isFinished) }));
  const reason =
    [ADDED_CONTAINER_FAILING, NOT_READY].find((each) => states.some((state) => state.reason === each)) ?? ADDED;
  const text = states.map(({ name, words }) => (words === undefined ? name : `${name} ${words}`)).join("; ");
  const message = text.length > LONGEST_MESSAGE ? `${text.slice(0, LONGEST_MESSAGE - 1)}…` : text;
  const { startTime } = delegate.status ?? {};
  const lastTransitionTime = shown?.lastTransitionTime ?? startTime ?? delegate.metadata.creationTimestamp;
  return {
    type: ADDED_CONDITION,
    status: "True",
    reason,
    message,
    ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
  };
}

function addedContainers(proxy: Pod, { spec, status }: Pod): AddedContainer[] {
  const { containers = [], initContainers = [] } = spec ?? {};
  const own = new Set(
    [...(proxy.spec?.initContainers ?? []), ...(proxy.spec?.containers ?? [])].map(({ name }) => name),
  );
  const { containerStatuses = [], initContainerStatuses = [] } = status ?? {};
  const statusOf = new Map([...initContainerStatuses, ...containerStatuses].map((each) => [each.name, each]));
  const added = (all: readonly Container[], isInit: boolean): AddedContainer[] =>
    all
      .filter(({ name }) => !own.has(name))
      .map(({ name, restartPolicy }) => ({
        name,
        isPlainInit: isInit && restartPolicy !== "Always",
        status: statusOf.get(name),
      }));
  return [...added(initContainers, true), ...added(containers, false)];
}

/** Returns what is wrong with a container, in words that change only with its state. Empty if nothing is. */
function stateOf(
  { status, isPlainInit }: Omit<AddedContainer, "name">,
  isFinished: boolean,
): { readonly reason?: string; readonly words?: string } {
  const { waiting, running, terminated } = status?.state ?? {};
  const restarts = (status?.restartCount ?? 0) === 0 ? "" : `, ${status?.restartCount} restarts`;
  if (waiting?.reason !== undefined && waiting.reason !== "" && !STARTING.has(waiting.reason)) {
    const { terminated: last } = status?.lastState ?? {};
    return {
      reason: ADDED_CONTAINER_FAILING,
      words: `waits: ${waiting.reason}${last === undefined ? "" : `, ${exitOf(last)}`}${restarts}`,
    };
  }
  if (terminated !== undefined && terminated.exitCode !== 0 && !isFinished) {
    return { reason: ADDED_CONTAINER_FAILING, words: `ended: ${exitOf(terminated)}${restarts}` };
  }
  if (running !== undefined && status?.ready === false && !isPlainInit) {
    return { reason: NOT_READY, words: `runs and is not ready${restarts}` };
  }
  return restarts === "" ? {} : { words: `runs${restarts}` };
}

function exitOf({ exitCode, reason }: { readonly exitCode: number; readonly reason?: string }): string {
  return `exit code ${exitCode}${reason === undefined ? "" : ` (${reason})`}`;
}
