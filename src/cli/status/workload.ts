import { PROXY_LABEL, PROXY_LABEL_VALUE } from "../../api/keys.ts";
import type { KubeEvent, Pod, Stored } from "../../api/kubernetes.ts";
import { workloadOf } from "../../controllers/preferences/workload.ts";
import type { Division, Replicas } from "../../placement/division.ts";
import { divideOpen } from "../../placement/open-division.ts";
import { podRequests } from "../../placement/requests.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { conditionOf, isBound, isDeleting, isGated, isLive, unschedulableMessage } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { whyNotPlaced } from "../../pods/proxy-conditions.ts";
import type { HostState } from "../simulation/host-state.ts";
import { type Place, Simulation } from "../simulation/simulation.ts";
import type { ClaimTemplate } from "../simulation/workloads.ts";
import { type OwnWorkload, whyNotDelegated } from "./not-delegated.ts";
import { gatesOf, UNREPORTED } from "./pod.ts";
import { type Trouble, troublesOf } from "./trouble.ts";

/** The host's objects of one workload. */
export interface WorkloadFacts {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** Number of pods that it wants now. */
  readonly replicas: number;
  readonly pods: readonly Stored<Pod>[];
  /** Metadata of the workload. */
  readonly metadata?: OwnWorkload["metadata"];
  /** Metadata of the pod template. */
  readonly template?: OwnWorkload["template"];
  /** Events of controllers that could not create pods of the workload. */
  readonly refusals?: readonly KubeEvent[];
  /** The workload's next pod after admission. Undefined when its pods are not delegated. */
  readonly next?: Stored<Pod>;
  /** Claims that the controller creates before that pod. */
  readonly nextClaims?: readonly ClaimTemplate[];
}

/** A member's share of a workload. */
export interface WorkloadMember {
  readonly cluster: string;
  /** Number of pods that the scheduling preferences give it now. Absent without preferences. */
  readonly wanted?: number;
  /** Number of further pods that they would give it if it had room. */
  readonly overflow?: number;
  /** Pods there that have neither ended nor are terminating. */
  readonly has: number;
  readonly ready: number;
  /** All pods there by phase, or Terminating. */
  readonly phases: Replicas;
  /** Why one more pod would not go there. Absent if it would. */
  readonly whyNot?: string;
}

/** Pods without a member, for one reason. */
export interface PendingPods {
  readonly pods: readonly string[];
  readonly reason: string;
  /** The condition's message, with a reason for each member. */
  readonly message: string;
}

/** A workload, as `legation status` shows it. */
export interface WorkloadStatus {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly replicas: number;
  readonly pods: number;
  /** Running replicas are moved to keep the division. Undefined without a division. */
  readonly rebalance?: boolean;
  readonly clusters: readonly WorkloadMember[];
  /** Pods that are the host's own. */
  readonly onHost: number;
  /** Pods on the host that are not in overflow mode. */
  readonly notDelegated: number;
  /** Why they are not delegated, and what to write. Absent if there are none. */
  readonly whyOnHost?: string;
  readonly readyOnHost: number;
  readonly pending: readonly PendingPods[];
  /** Further troubles of the workload. */
  readonly troubles: readonly Trouble[];
  /** Member that one more pod would get. Absent if it would wait, or is not delegated. */
  readonly next?: string;
}

/** Computes the division of one workload from the host's objects, by the controller's own rules. */
export function workloadStatus(facts: WorkloadFacts, host: HostState, now: number): WorkloadStatus {
  const { kind, namespace, name, replicas, pods, next } = facts;
  const placed = pods.flatMap((pod) => {
    const cluster = memberOf(pod);
    return cluster === undefined ? [] : [{ cluster, pod }];
  });
  const live = placed.filter(({ pod }) => isLive(pod));
  const has: Record<string, number> = {};
  for (const { cluster } of live) has[cluster] = (has[cluster] ?? 0) + 1;
  const division = next === undefined ? undefined : divisionOf(next, replicas, has, host, now);
  const place = next === undefined ? undefined : placeOf(next, facts, host, now);
  const names = new Set([
    ...host.clusters.map(({ metadata }) => metadata.name),
    ...placed.map(({ cluster }) => cluster),
  ]);
  const clusters = [...names].sort().map((cluster) => {
    const there = placed.filter((one) => one.cluster === cluster).map(({ pod }) => pod);
    const wanted = division?.replicas[cluster];
    const overflow = division?.shortfall[cluster];
    const whyNot = place?.others.find((other) => other.cluster === cluster)?.message;
    return {
      cluster,
      ...(division === undefined ? {} : { wanted: wanted ?? 0 }),
      ...(overflow === undefined ? {} : { overflow }),
      has: has[cluster] ?? 0,
      ready: there.filter(isReady).length,
      phases: phasesOf(there),
      ...(whyNot === undefined ? {} : { whyNot }),
    };
  });
  const own = pods.filter((pod) => !isMarked(pod));
  return {
    kind,
    namespace,
    name,
    replicas,
    pods: pods.length,
    ...(division === undefined ? {} : { rebalance: division.rebalance }),
    clusters,
    onHost: own.length,
    ...whyOnHost(own, facts, host),
    readyOnHost: own.filter(isReady).length,
    pending: pendingOf(pods),
    troubles: troublesOf({
      namespace,
      replicas,
      pods,
      clusters: host.clusters,
      nodes: host.nodes,
      refusals: facts.refusals ?? [],
    }),
    ...(place?.cluster === undefined ? {} : { next: place.cluster }),
  };
}

function whyOnHost(
  pods: readonly Stored<Pod>[],
  facts: WorkloadFacts,
  { namespaces }: HostState,
): Pick<WorkloadStatus, "notDelegated" | "whyOnHost"> {
  // A pod in overflow mode waits for the host's scheduler first.
  const unmarked = pods.filter((pod) => !isOverflow(pod));
  const [first] = unmarked;
  if (first === undefined) return { notDelegated: 0 };
  const own = namespaces.find(({ metadata }) => metadata.name === facts.namespace);
  return { notDelegated: unmarked.length, whyOnHost: whyNotDelegated(first.metadata, own, facts) };
}

function placeOf(
  next: Stored<Pod>,
  { namespace, nextClaims = [] }: WorkloadFacts,
  host: HostState,
  now: number,
): Place {
  const simulation = new Simulation(host, now);
  simulation.addClaims(namespace, nextClaims);
  return simulation.place(next);
}

/** Computes the division as the controller does when it moves replicas. */
function divisionOf(
  pod: Stored<Pod>,
  total: number,
  placed: Replicas,
  host: HostState,
  now: number,
): (Division & { readonly rebalance: boolean }) | undefined {
  // Waiting pods take no room yet.
  const simulation = new Simulation({ ...host, proxies: host.proxies.filter(isBound) }, now);
  const sharing = simulation.sharing(pod);
  if (sharing === undefined) return undefined;
  const divided = divideOpen({ ...sharing, total, placed, requests: podRequests(pod), key: workloadOf(pod) });
  return { ...divided, rebalance: sharing.preferences.rebalance };
}

function isReady(pod: Pod): boolean {
  return conditionOf(pod, "Ready")?.status === "True";
}

function phasesOf(pods: readonly Stored<Pod>[]): Record<string, number> {
  const phases: Record<string, number> = {};
  for (const pod of pods) {
    const phase = isDeleting(pod) ? "Terminating" : (pod.status?.phase ?? "Unknown");
    phases[phase] = (phases[phase] ?? 0) + 1;
  }
  return phases;
}

function pendingOf(pods: readonly Stored<Pod>[]): PendingPods[] {
  const waiting = pods
    .filter((pod) => waits(pod) && !isBound(pod) && isLive(pod))
    .map((pod) => ({ name: pod.metadata.name, ...reasonOf(pod) }));
  return [...Map.groupBy(waiting, ({ reason, message }) => `${reason}: ${message}`).values()].flatMap((those) =>
    those.slice(0, 1).map(({ reason, message }) => ({ pods: those.map(({ name }) => name).sort(), reason, message })),
  );
}

/** Reports whether a pod is a proxy, which an overflowed pod is as well. */
function isMarked({ metadata }: Stored<Pod>): boolean {
  return metadata.labels?.[PROXY_LABEL] === PROXY_LABEL_VALUE;
}

/** Reports whether a pod waits for a member. In overflow mode it does so once the host has no node for it. */
function waits(pod: Stored<Pod>): boolean {
  return isMarked(pod) || (isOverflow(pod) && unschedulableMessage(pod) !== undefined);
}

function reasonOf(pod: Stored<Pod>): { readonly reason: string; readonly message: string } {
  if (isGated(pod)) return { reason: "SchedulingGated", message: `waits for its scheduling gates: ${gatesOf(pod)}` };
  if (isOverflow(pod)) {
    const message = `this cluster has no node: ${unschedulableMessage(pod)}; an event NotOverflowed says why no member takes it`;
    return { reason: "Unschedulable", message };
  }
  const { reason = "NotPlaced", message = "" } = whyNotPlaced(pod) ?? {
    message: `${UNREPORTED}: it is being placed, or \`legation controller\` does not run`,
  };
  return { reason, message };
}
