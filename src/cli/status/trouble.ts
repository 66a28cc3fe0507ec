import type { Cluster } from "../../api/cluster.ts";
import { DELEGATE_UID_ANNOTATION } from "../../api/keys.ts";
import type { ContainerStatus, KubeEvent, KubeNode, Pod, Stored, Toleration } from "../../api/kubernetes.ts";
import { CORDONED } from "../../placement/member-candidate.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { controllerOf, isBound, isDeleting, isLive, isTerminal } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { counted } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { readinessOf } from "./clusters.ts";

/** A problem of a workload or pod, and its remedy. */
export interface Trouble {
  readonly what: string;
  readonly remedy?: string;
}

export interface TroubleFacts {
  readonly namespace: string;
  /** Number of pods that the workload wants. */
  readonly replicas: number;
  readonly pods: readonly Stored<Pod>[];
  readonly clusters: readonly Stored<Cluster>[];
  /** Events of controllers that could not create pods of the workload. */
  readonly refusals: readonly KubeEvent[];
}

/** Waiting reasons of every starting container. */
const STARTING: ReadonlySet<string> = new Set(["ContainerCreating", "PodInitializing"]);
const LOST_TAINT = "node.kubernetes.io/unreachable";

/** Returns troubles other than waiting: lost members, refused pods, and pods that do not start, fail or do not end. */
export function troublesOf(facts: TroubleFacts): Trouble[] {
  return [...lostMembers(facts), ...refused(facts), ...notStarting(facts), ...failed(facts)];
}

/** Returns the lost members of these pods, and the fate of the pods there. */
function lostMembers({ namespace, pods, clusters }: Pick<TroubleFacts, "namespace" | "pods" | "clusters">): Trouble[] {
  return clusters.flatMap(({ metadata: { name }, status }) => {
    const there = pods.filter((pod) => memberOf(pod) === name && !isTerminal(pod));
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    if (there.length === 0 || ready === undefined || ready.status === "True") return [];
    const what = `${name} is lost since ${ready.lastTransitionTime}: ${ready.message}`;
    const live = there.filter((pod) => !isDeleting(pod));
    const ending = there.filter(isDeleting);
    return [...cutOff(live, name, what), ...notEnding(ending, name, live.length === 0 ? `${what}; ` : "", namespace)];
  });
}

function cutOff(pods: readonly Stored<Pod>[], member: string, what: string): Trouble[] {
  const [first] = pods;
  if (first === undefined) return [];
  const [those, them] = pods.length === 1 ? [`pod ${first.metadata.name}`, "it"] : [counted(pods.length), "them"];
  return [
    {
      what: `${what}; its ${those} may run on there, and what is shown of ${them} is old`,
      remedy: whatBecomes(pods, member),
    },
  ];
}

function notEnding(pods: readonly Stored<Pod>[], member: string, lead: string, namespace: string): Trouble[] {
  const [first] = pods;
  if (first === undefined) return [];
  const { name } = first.metadata;
  const [those, example] = pods.length === 1 ? [`pod ${name}`, ""] : [counted(pods.length), ` (${name}, …)`];
  return [
    {
      what: `${lead}${those} there cannot end before ${member} is ready again${example}`,
      remedy: `where it is gone for good: kubectl -n ${namespace} delete pod ${name} --grace-period=0 --force`,
    },
  ];
}

/** Describes the fate of pods on a lost member, as the node lifecycle controller decides it. */
function whatBecomes(pods: readonly Stored<Pod>[], member: string): string {
  const [first] = pods;
  const one = pods.length === 1;
  const after = pods.map(({ spec }) => evictedAfter(spec?.tolerations ?? []));
  const soonest = after.filter((seconds) => seconds !== undefined).sort((a, b) => a - b)[0];
  if (soonest === undefined) {
    return `${one ? "it waits" : "they wait"} for ${member} to come back, as ${one ? "its" : "their"} tolerations say (legation.dev/failover)`;
  }
  const when = `${soonest} s after ${one ? "its" : "their"} node has the taint ${LOST_TAINT}`;
  if (one && first !== undefined && controllerOf(first) === undefined)
    return `it is deleted ${when}, and nothing replaces it`;
  const staying = after.filter((seconds) => seconds === undefined).length;
  const rest = staying === 0 ? "" : `; ${staying} of them ${staying === 1 ? "waits" : "wait"} for ${member}`;
  const maker = first === undefined ? undefined : controllerOf(first);
  if (maker?.kind === "StatefulSet") return `${anew(one, maker.name, member, when)}${rest}`;
  return `${one ? "it is" : "they are"} replaced elsewhere ${when}${rest}`;
}

/** Describes the fate of a StatefulSet's pods: it replaces a pod only once the old one is gone. */
function anew(one: boolean, statefulSet: string, member: string, when: string): string {
  const [are, stay, them, they] = one ? ["it is", "stays", "it", "it is"] : ["they are", "stay", "them", "they are"];
  return (
    `${are} deleted ${when}, and then ${stay} Terminating; StatefulSet ${statefulSet} makes ${them} anew only when ` +
    `${member} is ready again, its node is tainted out of service, or ${they} deleted by force`
  );
}

/** Returns after how many seconds a taint evicts the pod. Undefined: never. */
function evictedAfter(tolerations: readonly Toleration[]): number | undefined {
  const matching = tolerations.filter(
    ({ key = LOST_TAINT, effect = "NoExecute" }) => key === LOST_TAINT && effect === "NoExecute",
  );
  if (matching.length === 0) return 0;
  const limited = matching.flatMap(({ tolerationSeconds }) => tolerationSeconds ?? []);
  return limited.length === 0 ? undefined : Math.min(...limited);
}

/** Returns the last refusal to create pods, while pods or a CronJob's run are missing. An event may be outdated. */
function refused({ replicas, pods, refusals }: TroubleFacts): Trouble[] {
  const there = pods.filter(isLive).length;
  const last = [...refusals].sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))[0];
  if (last === undefined) return [];
  const { involvedObject: { kind = "", name = "" } = {}, message = "" } = last;
  if (kind === "CronJob") return [{ what: `its Job cannot be created (${timeOf(last)}): ${message}` }];
  if (there >= replicas) return [];
  return [{ what: `${replicas - there} more cannot be created (${kind} ${name}, ${timeOf(last)}): ${message}` }];
}

/** Returns when an event last occurred, in RFC 3339. */
export function timeOf({ lastTimestamp, eventTime, metadata }: KubeEvent): string {
  return lastTimestamp ?? eventTime ?? metadata?.creationTimestamp ?? "";
}

function notStarting({ namespace, pods }: TroubleFacts): Trouble[] {
  return alike(namespace, pods, ["does not run", "do not run"], (pod) =>
    isBound(pod) && isLive(pod) ? statusesOf(pod).flatMap(waitingWords)[0] : undefined,
  );
}

function waitingWords({ name, state, restartCount }: ContainerStatus): string[] {
  const { reason = "", message } = state?.waiting ?? {};
  if (reason === "" || STARTING.has(reason)) return [];
  const restarts = restartCount === 0 ? "" : ` (${restartCount} restarts)`;
  return [`${name} waits: ${reason}${message === undefined ? "" : `: ${message}`}${restarts}`];
}

function failed({ namespace, pods }: TroubleFacts): Trouble[] {
  return alike(namespace, pods, ["has failed", "have failed"], (pod) => {
    const { phase, reason, message } = pod.status ?? {};
    if (phase !== "Failed" || isDeleting(pod)) return undefined;
    return reason === undefined ? exitWords(pod) : `${reason}${message === undefined ? "" : `: ${message}`}`;
  });
}

/** Returns one trouble for all pods of one cluster that have the same reason. */
function alike(
  namespace: string,
  pods: readonly Stored<Pod>[],
  [verb, verbOfMany]: readonly [string, string],
  reasonOf: (pod: Stored<Pod>) => string | undefined,
): Trouble[] {
  const found = pods.flatMap((pod) => {
    const reason = reasonOf(pod);
    return reason === undefined ? [] : [{ pod, words: `${memberOf(pod) ?? "this cluster"}: ${reason}` }];
  });
  return [...Map.groupBy(found, ({ words }) => words)].map(([words, those]) => ({
    what: `${counted(those.length)} ${those.length === 1 ? verb : verbOfMany} in ${words}`,
    remedy: `see legation status pod ${those[0]?.pod.metadata.name} -n ${namespace}`,
  }));
}

function exitWords(pod: Pod): string {
  const words = statusesOf(pod).flatMap(({ name, state }) => {
    const { exitCode = 0, reason } = state?.terminated ?? {};
    return exitCode === 0
      ? []
      : [`${name} ended with exit code ${exitCode}${reason === undefined ? "" : ` (${reason})`}`];
  });
  return words[0] ?? "no container says why";
}

function statusesOf({ status }: Pod): ContainerStatus[] {
  return [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
}

/** Returns the problems of a pod's member, and what they mean for the pod. `node` is the member's virtual node. */
export function memberTroubles(
  pod: Stored<Pod>,
  cluster: Stored<Cluster>,
  node: Stored<KubeNode> | undefined,
): Trouble[] {
  if (isTerminal(pod)) return [];
  const { namespace = "" } = pod.metadata;
  const { name } = cluster.metadata;
  const lost = lostMembers({ namespace, pods: [pod], clusters: [cluster] });
  if (cluster.metadata.deletionTimestamp !== undefined) {
    return [...lost, { what: `${name} ${readinessOf(cluster, node).reason}` }];
  }
  return [...lost, ...(lost.length === 0 ? unheard(pod, cluster, node) : []), ...cordoned(pod, name, node)];
}

/** Returns a problem if the member's Cluster may be stale, since no controller reports on it. */
function unheard(pod: Stored<Pod>, cluster: Stored<Cluster>, node: Stored<KubeNode> | undefined): Trouble[] {
  const { name } = cluster.metadata;
  const { ready, reason } = readinessOf(cluster, node);
  if (ready === "True") return [];
  const isNodeLost = node !== undefined && !isNodeReady(node) && !isDeleting(pod);
  return [{ what: `${name}: ${reason}`, ...(isNodeLost ? { remedy: whatBecomes([pod], name) } : {}) }];
}

function cordoned(pod: Stored<Pod>, member: string, node: Stored<KubeNode> | undefined): Trouble[] {
  if (node?.spec?.unschedulable !== true || isDeleting(pod)) return [];
  const isThere = pod.metadata.annotations?.[DELEGATE_UID_ANNOTATION] !== undefined;
  const what = `${member}: ${CORDONED.message}`;
  // A cordon does not stop the delegate of a bound pod.
  if (!isThere && isBound(pod)) return [{ what: `${what}; this pod is bound to it and stays` }];
  const meaning = isThere
    ? "this pod stays there, and one that replaces it goes elsewhere"
    : "this pod gets no delegate there before that ends";
  return [
    {
      what: `${what}; ${meaning}`,
      remedy: `so that pods go there again: kubectl uncordon ${node.metadata.name}`,
    },
  ];
}

/** Formats a problem for people. */
export function troubleText({ what, remedy }: Trouble, terminal: Terminal): string {
  const line = `${terminal.paint("red", "trouble:")} ${what}`;
  return remedy === undefined ? line : `${line}\n  ${remedy}`;
}
