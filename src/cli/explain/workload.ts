import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import type { Division, Replicas } from "../../placement/division.ts";
import { divideOpen } from "../../placement/open-division.ts";
import { podRequests } from "../../placement/requests.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { conditionOf, isBound, isLive } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { workloadOf } from "../../scheduling/workload.ts";
import type { ClaimTemplate } from "../../simulation/claims.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { type SimulatedPlace, Simulation } from "../../simulation/simulation.ts";
import { isMarkedWhole } from "../../whole/jobs/kind.ts";
import { endOf } from "../../whole/jobs/progress.ts";
import { membersOfJob } from "../../whole/jobs/shares.ts";
import type { Trouble } from "./model.ts";
import { type OwnWorkload, whyNotDelegated } from "./not-delegated.ts";
import { type PendingPods, pendingPods } from "./pending.ts";
import { countBy, kubectlStatus } from "./pod-status.ts";
import { type TroubleFacts, troublesOf } from "./trouble.ts";
import { isMarked, whyWithoutMember } from "./waiting.ts";

/** The host's objects of one workload. */
export interface WorkloadFacts extends OwnWorkload, TroubleFacts {
  /** The workload's next pod after admission. Undefined when its pods are not delegated. */
  readonly next?: Stored<Pod>;
  /** Condition by which the Job has ended. Undefined: more pods may come. */
  readonly ended?: string | undefined;
  readonly jobs?: readonly Stored<Job>[];
  /** Words for what the account may not read. */
  readonly hidden?: string | undefined;
  /** Claims that the controller creates before that pod. */
  readonly nextClaims?: readonly ClaimTemplate[];
}

export interface WorkloadMember {
  readonly cluster: string;
  /** Number of pods that the scheduling preferences give it now. Undefined without preferences. */
  readonly wanted: number | undefined;
  /** Number of further pods that they would give it if it had room. */
  readonly overflow: number | undefined;
  /** Pods in the member that have neither ended nor are terminating. */
  readonly has: number;
  readonly ready: number;
  /** All pods in the member by their status, as `kubectl get pods` shows it. */
  readonly statuses: Replicas;
  /** Why one more pod would not go to the member. Undefined if it would. */
  readonly whyNot: string | undefined;
}

/** A Job that a CronJob has made. */
export interface WorkloadRun {
  readonly name: string;
  /** RFC 3339. */
  readonly created: string | undefined;
  readonly state: "Running" | "Suspended" | "Complete" | "Failed";
  readonly succeeded: number;
  readonly failed: number;
  /** Members of a whole Job. */
  readonly clusters: readonly string[];
}

/** A workload, as `legation status` shows it. */
export interface WorkloadStatus {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly replicas: number;
  readonly pods: number;
  /** Condition by which a Job has ended: no more pods come. Undefined: they may. */
  readonly ended: string | undefined;
  /** Running replicas are moved to keep the division. Undefined without a division. */
  readonly rebalance: boolean | undefined;
  readonly clusters: readonly WorkloadMember[];
  /** Pods that are the host's own. */
  readonly onHost: number;
  /** Pods on the host that are not in overflow mode. */
  readonly notDelegated: number;
  /** Why they are not delegated, and what to write. Undefined if there are none. */
  readonly whyOnHost: string | undefined;
  readonly readyOnHost: number;
  readonly pending: readonly PendingPods[];
  /** The runs of a CronJob, newest first. */
  readonly runs: readonly WorkloadRun[];
  readonly troubles: readonly Trouble[];
  /** Words for what is not shown, since the account may not read it. */
  readonly hidden?: string | undefined;
  /** Member that one more pod would get. Undefined if it would wait, or is not delegated. */
  readonly next: string | undefined;
}

/** Computes the division of one workload from the host's objects, by the controller's own rules. */
export function workloadStatus(facts: WorkloadFacts, host: HostState, now: number): WorkloadStatus {
  const { kind, namespace, name, replicas, pods, next } = facts;
  const placed = pods.flatMap((pod) => {
    const cluster = memberOf(pod);
    return cluster === undefined ? [] : [{ cluster, pod }];
  });
  const has = countBy(placed.filter(({ pod }) => isLive(pod)).map(({ cluster }) => cluster));
  const division = next === undefined ? undefined : divisionOf(next, replicas, has, host, now);
  const place = next === undefined ? undefined : placeOf(next, facts, host, now);
  const names = new Set([
    ...host.clusters.map(({ metadata }) => metadata.name),
    ...placed.map(({ cluster }) => cluster),
  ]);
  const clusters = [...names].sort().map((cluster) => {
    const there = placed.filter((one) => one.cluster === cluster).map(({ pod }) => pod);
    return {
      cluster,
      wanted: division && (division.replicas[cluster] ?? 0),
      overflow: division?.shortfall[cluster],
      has: has[cluster] ?? 0,
      ready: there.filter(isReady).length,
      statuses: countBy(there.map(kubectlStatus)),
      whyNot: place?.others.find((other) => other.cluster === cluster)?.message,
    };
  });
  const own = pods.filter((pod) => !isMarked(pod));
  // A pod in overflow mode waits for the host's scheduler first.
  const unmarked = own.filter((pod) => !isOverflow(pod));
  const [firstUnmarked] = unmarked;
  return {
    kind,
    namespace,
    name,
    replicas,
    pods: pods.length,
    ended: facts.ended,
    rebalance: division?.rebalance,
    clusters,
    onHost: own.length,
    notDelegated: unmarked.length,
    whyOnHost:
      firstUnmarked &&
      whyNotDelegated(
        firstUnmarked.metadata,
        host.namespaces.find(({ metadata }) => metadata.name === namespace),
        facts,
      ),
    readyOnHost: own.filter(isReady).length,
    pending: pendingOf(pods),
    runs: (facts.jobs ?? []).map(runOf).sort((a, b) => ((a.created ?? "") < (b.created ?? "") ? 1 : -1)),
    troubles: troublesOf(facts, host),
    next: place?.cluster,
    hidden: facts.hidden,
  };
}

function runOf(job: Stored<Job>): WorkloadRun {
  const { status = {}, metadata } = job;
  return {
    name: metadata.name,
    created: metadata.creationTimestamp,
    state: endOf(status) ?? "Running",
    succeeded: status.succeeded ?? 0,
    failed: status.failed ?? 0,
    clusters: isMarkedWhole(metadata.labels) ? membersOfJob(job) : [],
  };
}

function placeOf(
  next: Stored<Pod>,
  { namespace, nextClaims = [] }: WorkloadFacts,
  host: HostState,
  now: number,
): SimulatedPlace {
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

function pendingOf(pods: readonly Stored<Pod>[]): PendingPods[] {
  const waiting = pods.flatMap((pod) => {
    const why = whyWithoutMember(pod);
    return why === undefined ? [] : [{ name: pod.metadata.name, ...why }];
  });
  return pendingPods(waiting).map((those) => ({ ...those, pods: those.pods.toSorted() }));
}
