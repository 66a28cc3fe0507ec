import type { Cluster } from "../../api/cluster.ts";
import { ADDED_CONDITION, virtualNodeName } from "../../api/keys.ts";
import type { ContainerStatus, KubeEvent, KubeNode, Pod, Stored } from "../../api/kubernetes.ts";
import { counted } from "../../api/wording.ts";
import { ADDED_CONTAINER_FAILING } from "../../pods/added-containers.ts";
import { conditionOf, isBound, isDeleting, isLive, isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { isTolerated } from "../../pods/scheduling.ts";
import { firstTimeOf, lastOf } from "./events.ts";
import { cordoned, type HostMembers, notReady, removing } from "./members.ts";
import type { Trouble } from "./model.ts";

/** The objects that tell the troubles of a workload. */
export interface TroubleFacts {
  readonly namespace: string;
  /** Number of pods that the workload wants now. */
  readonly replicas: number;
  readonly pods: readonly Stored<Pod>[];
  /** Events of controllers that could not create pods of the workload. */
  readonly refusals?: readonly KubeEvent[];
}

/** Returns troubles other than waiting: lost members, refused pods, and pods that do not start or have failed. */
export function troublesOf(
  { namespace, replicas, pods, refusals = [] }: TroubleFacts,
  { clusters, nodes }: HostMembers,
): Trouble[] {
  const nodeOf = new Map(nodes.map((node) => [node.metadata.name, node]));
  return [
    ...clusters.flatMap((each) => lostMember(each, nodeOf.get(virtualNodeName(each.metadata.name)), pods)),
    ...refused(replicas, pods, refusals),
    ...notRunning(namespace, pods),
  ];
}

/** Returns the problems of a pod's member. `node` is the member's virtual node. */
export function memberTroubles(
  pod: Stored<Pod>,
  cluster: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
): Trouble[] {
  if (isTerminal(pod)) return [];
  const closed = removing(cluster) ?? (isDeleting(pod) ? undefined : cordoned(cluster.metadata.name, node));
  return [...lostMember(cluster, node, [pod]), ...(closed === undefined ? [] : [closed])];
}

const LOST = { key: "node.kubernetes.io/unreachable", effect: "NoExecute" };

/** Returns the trouble of a member that is not ready and has some of these pods, with what becomes of them. */
export function lostMember(
  cluster: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
  pods: readonly Stored<Pod>[],
): Trouble[] {
  const { name } = cluster.metadata;
  const there = pods.filter((pod) => memberOf(pod) === name && !isTerminal(pod));
  if (there.length === 0) return [];
  const found = notReady(cluster, node, `${counted(there.length)} there may run on, and the status shown is old`);
  if (found === undefined) return [];
  const live = there.filter((pod) => !isDeleting(pod));
  const remedies = live.length === 0 ? [] : [evictionOf(live, name)];
  const ending = there.find(isDeleting)?.metadata;
  if (ending !== undefined) {
    const command = `kubectl -n ${ending.namespace} delete pod ${ending.name} --grace-period=0 --force`;
    remedies.push(`pods that are being deleted end when ${name} is ready again; where it is gone for good: ${command}`);
  }
  return [{ ...found, remedy: remedies.join("; ") }];
}

/** Returns when a lost member's pods are evicted, as the node lifecycle controller decides it. */
function evictionOf(pods: readonly Stored<Pod>[], member: string): string {
  const after = pods.map(evictedAfter).filter(Number.isFinite);
  const staying = pods.length - after.length;
  const waiting = `tolerations (legation.dev/failover) keep ${counted(staying)} there until ${member} is ready again`;
  if (after.length === 0) return waiting;
  return (
    `${Math.min(...after)} s after its node gets the taint ${LOST.key}, Kubernetes evicts them: a ReplicaSet or Job ` +
    `replaces them then, a StatefulSet only when ${member} is ready again, its node is tainted out of service, or they ` +
    `are deleted by force; nothing replaces a bare pod${staying === 0 ? "" : `; ${waiting}`}`
  );
}

/** Returns after how many seconds the taint of a lost node evicts the pod. */
function evictedAfter({ spec }: Pod): number {
  const tolerating = (spec?.tolerations ?? []).filter((toleration) => isTolerated(LOST, [toleration]));
  if (tolerating.length === 0) return 0;
  return Math.min(...tolerating.map(({ tolerationSeconds = Number.POSITIVE_INFINITY }) => tolerationSeconds));
}

/** Returns the last refusal to create pods, while pods or a CronJob's run are missing. An event may be outdated. */
function refused(replicas: number, pods: readonly Stored<Pod>[], refusals: readonly KubeEvent[]): Trouble[] {
  const missing = replicas - pods.filter(isLive).length;
  const last = lastOf(refusals);
  if (last === undefined) return [];
  const { involvedObject: { kind = "", name = "" } = {}, message = "" } = last;
  const isRun = kind === "CronJob";
  if (!isRun && missing <= 0) return [];
  const what = `${isRun ? "its Job" : `${missing} more`} cannot be created: ${message}`;
  return [{ what, since: firstTimeOf(last), by: `${kind} ${name}` }];
}

/** Returns one trouble for all pods of a cluster that do not start, or have failed, for the same reason. */
function notRunning(namespace: string, pods: readonly Stored<Pod>[]): Trouble[] {
  const groups = Map.groupBy(pods, (pod) => {
    const problem = problemOf(pod);
    return problem && `in ${memberOf(pod) ?? "this cluster"}: ${problem}`;
  });
  groups.delete(undefined);
  return [...groups].map(([words, those]) => ({
    what: `${counted(those.length)} ${words}`,
    remedy: `see \`legation status pod ${those[0]?.metadata.name} -n ${namespace}\``,
  }));
}

/** Returns the trouble of a pod whose delegate has failing containers that the pod itself lacks. */
export function addedTroubles(pod: Stored<Pod>): Trouble[] {
  const problem = addedProblem(pod);
  if (problem === undefined || isDeleting(pod)) return [];
  const { name, namespace } = pod.metadata;
  const since = conditionOf(pod, ADDED_CONDITION)?.lastTransitionTime;
  return [
    {
      what: problem,
      ...(since === undefined ? {} : { since }),
      remedy: `\`legation logs ${name} -n ${namespace} -c NAME\` shows the log of one; \`kubectl logs\` does not`,
    },
  ];
}

/** Returns which containers that the member added fail. Undefined if none does. */
function addedProblem(pod: Pod): string | undefined {
  const { reason, message } = conditionOf(pod, ADDED_CONDITION) ?? {};
  if (reason !== ADDED_CONTAINER_FAILING) return undefined;
  return `containers that ${memberOf(pod) ?? "its member"} added fail: ${message}`;
}

// Waiting reasons of every starting container.
const STARTING: ReadonlySet<string> = new Set(["ContainerCreating", "PodInitializing"]);

/** Returns why a pod has failed, or does not start. Undefined: it does neither. */
export function problemOf(pod: Stored<Pod>): string | undefined {
  const { phase, reason, message, initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const statuses = [...initContainerStatuses, ...containerStatuses];
  if (phase === "Failed" && !isDeleting(pod)) {
    const exits = statuses.filter(({ state }) => state?.terminated?.exitCode !== 0).flatMap(exitWords);
    const why =
      reason === undefined ? (exits[0] ?? "no container says why") : [reason, message].filter(Boolean).join(": ");
    return `failed: ${why}`;
  }
  if (!isBound(pod) || !isLive(pod)) return undefined;
  const stuck = statuses.find(({ state }) => state?.waiting?.reason && !STARTING.has(state.waiting.reason));
  if (stuck === undefined) return addedProblem(pod);
  const restarts = stuck.restartCount === 0 ? "" : ` (${stuck.restartCount} restarts)`;
  return `${waitWords(stuck)[0]}${restarts}`;
}

/** Returns why a container waits; empty if it does not. */
export function waitWords({ name, state }: ContainerStatus): string[] {
  const { waiting } = state ?? {};
  return waiting === undefined
    ? []
    : [`${name} waits: ${[waiting.reason, waiting.message].filter(Boolean).join(": ")}`];
}

/** Returns how a container ended; empty if it has not. */
export function exitWords({ name, state }: ContainerStatus): string[] {
  const ended = state?.terminated;
  if (ended === undefined) return [];
  return [`${name}: exit code ${ended.exitCode}${ended.reason === undefined ? "" : ` (${ended.reason})`}`];
}
