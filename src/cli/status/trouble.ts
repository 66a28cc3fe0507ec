import type { Cluster } from "../../api/cluster.ts";
import type { ContainerStatus, KubeEvent, Pod, Stored, Toleration } from "../../api/kubernetes.ts";
import { controllerOf, isBound, isDeleting, isLive, isTerminal } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { counted } from "../counted.ts";
import type { Terminal } from "../terminal.ts";

/** Something that is wrong with a workload, and what can be done about it. */
export interface Trouble {
  readonly what: string;
  readonly remedy?: string;
}

export interface TroubleFacts {
  readonly namespace: string;
  /** How many pods the workload is to have. */
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

/** Which members of these pods are lost, and what becomes of the pods there. */
export function lostMembers({
  namespace,
  pods,
  clusters,
}: Pick<TroubleFacts, "namespace" | "pods" | "clusters">): Trouble[] {
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
export function whatBecomes(pods: readonly Stored<Pod>[], member: string): string {
  const [first] = pods;
  const one = pods.length === 1;
  const after = pods.map(({ spec }) => evictedAfter(spec?.tolerations ?? []));
  const soonest = after.filter((seconds) => seconds !== undefined).sort((a, b) => a - b)[0];
  if (soonest === undefined) {
    return `${one ? "it waits" : "they wait"} for ${member} to come back, as ${one ? "its" : "their"} tolerations say (legation.dev/failover)`;
  }
  const when = `${soonest} s after ${one ? "its" : "their"} node has the taint ${LOST_TAINT}`;
  if (one && first !== undefined && controllerOf(first) === undefined)
    return `it is deleted ${when}, and nobody replaces it`;
  const staying = after.filter((seconds) => seconds === undefined).length;
  const rest = staying === 0 ? "" : `; ${staying} of them ${staying === 1 ? "waits" : "wait"} for ${member}`;
  const maker = first === undefined ? undefined : controllerOf(first);
  if (maker?.kind === "StatefulSet") return `${anew(one, maker.name, member, when)}${rest}`;
  return `${one ? "it is" : "they are"} replaced elsewhere ${when}${rest}`;
}

/** A StatefulSet makes a pod again only when the last one of that name is gone. */
function anew(one: boolean, statefulSet: string, member: string, when: string): string {
  const [are, stay, them, they] = one ? ["it is", "stays", "it", "it is"] : ["they are", "stay", "them", "they are"];
  return (
    `${are} deleted ${when}, and then ${stay} Terminating; StatefulSet ${statefulSet} makes ${them} anew only when ` +
    `${member} is ready again, its node is tainted out of service, or ${they} deleted by force`
  );
}

/** Seconds; undefined: never. */
function evictedAfter(tolerations: readonly Toleration[]): number | undefined {
  const matching = tolerations.filter(
    ({ key = LOST_TAINT, effect = "NoExecute" }) => key === LOST_TAINT && effect === "NoExecute",
  );
  if (matching.length === 0) return 0;
  const limited = matching.flatMap(({ tolerationSeconds }) => tolerationSeconds ?? []);
  return limited.length === 0 ? undefined : Math.min(...limited);
}

/** Only while pods are missing, or a CronJob's whole run: an event outlives what it tells of. */
function refused({ replicas, pods, refusals }: TroubleFacts): Trouble[] {
  const there = pods.filter(isLive).length;
  const last = [...refusals].sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1))[0];
  if (last === undefined) return [];
  const { involvedObject: { kind = "", name = "" } = {}, message = "" } = last;
  if (kind === "CronJob") return [{ what: `its Job cannot be created (${timeOf(last)}): ${message}` }];
  if (there >= replicas) return [];
  return [{ what: `${replicas - there} more cannot be created (${kind} ${name}, ${timeOf(last)}): ${message}` }];
}

/** When it was last told; RFC 3339. */
export function timeOf({ lastTimestamp, eventTime, metadata }: KubeEvent): string {
  return lastTimestamp ?? eventTime ?? metadata?.creationTimestamp ?? "";
}

function notStarting({ namespace, pods }: TroubleFacts): Trouble[] {
  const stuck = pods.flatMap((pod) => {
    if (!isBound(pod) || !isLive(pod)) return [];
    const why = statusesOf(pod).flatMap(waitingWords)[0];
    return why === undefined ? [] : [{ pod, words: `${memberOf(pod) ?? "this cluster"}: ${why}` }];
  });
  return grouped(stuck).map(([words, those]) => ({
    what: `${counted(those.length)} ${those.length === 1 ? "does" : "do"} not run in ${words}`,
    remedy: seePod(namespace, those),
  }));
}

function waitingWords({ name, state, restartCount }: ContainerStatus): string[] {
  const { reason = "", message } = state?.waiting ?? {};
  if (reason === "" || STARTING.has(reason)) return [];
  const restarts = restartCount === 0 ? "" : ` (${restartCount} restarts)`;
  return [`${name} waits: ${reason}${message === undefined ? "" : `: ${message}`}${restarts}`];
}

function failed({ namespace, pods }: TroubleFacts): Trouble[] {
  const ended = pods.flatMap((pod) => {
    if (pod.status?.phase !== "Failed" || isDeleting(pod)) return [];
    const { reason, message } = pod.status;
    const words = reason === undefined ? exitWords(pod) : `${reason}${message === undefined ? "" : `: ${message}`}`;
    return [{ pod, words: `${memberOf(pod) ?? "this cluster"}: ${words}` }];
  });
  return grouped(ended).map(([words, those]) => ({
    what: `${counted(those.length)} ${those.length === 1 ? "has" : "have"} failed in ${words}`,
    remedy: seePod(namespace, those),
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

function grouped(
  found: readonly { readonly pod: Stored<Pod>; readonly words: string }[],
): [string, readonly Stored<Pod>[]][] {
  const groups = [...Map.groupBy(found, ({ words }) => words)];
  return groups.map(([words, those]) => [words, those.map(({ pod }) => pod)]);
}

function seePod(namespace: string, [first]: readonly Stored<Pod>[]): string {
  return `see legation status pod ${first?.metadata.name} -n ${namespace}`;
}

/** As people read it. */
export function troubleText({ what, remedy }: Trouble, terminal: Terminal): string {
  const line = `${terminal.paint("red", "trouble:")} ${what}`;
  return remedy === undefined ? line : `${line}\n  ${remedy}`;
}
