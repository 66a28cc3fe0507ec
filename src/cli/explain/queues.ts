import { QUOTA_ANNOTATION } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterQueue, LocalQueue, ResourceFlavor } from "../../api/kueue.ts";
import type { Workload } from "../../api/kueue-workload.ts";
import { clusterQueues, localQueues, resourceFlavors, workloads } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { resourceOf, ServedResource } from "../../kube/optional-resource.ts";
import { apiVersionOf } from "../../kube/resources.ts";
import { FLAVORS, type Hidden, OTHER_WORKLOADS, QUEUES } from "../shared/hidden.ts";
import { listServed, listWhereAllowed, namespacedName, readable } from "../shared/reading.ts";
import type { HostMembers } from "./members.ts";
import {
  isDeactivated,
  isWaiting,
  membersOfFlavor,
  type QueueState,
  queueState,
  type WaitingWorkload,
  waitingWorkload,
  waitsSince,
} from "./queue-waiting.ts";

/** The status of a ClusterQueue of Kueue. */
export interface QueueStatus extends QueueState {
  /** Asks that quotas of flavors that select members follow them. */
  readonly followsMembers: boolean;
  readonly admitted: number;
  /** Counts workloads that have quota and wait for admission checks, too. */
  readonly pending: number;
  /** The first few that wait, longest first. */
  readonly waiting: readonly WaitingWorkload[];
}

/** Kueue's objects of the host, as far as the account may read them. */
export interface QueueObjects {
  readonly queues: readonly Stored<ClusterQueue>[];
  readonly flavors: readonly Stored<ResourceFlavor>[];
  readonly localQueues: readonly Stored<LocalQueue>[];
  readonly workloads: readonly Stored<Workload>[];
  readonly hidden: readonly Hidden[];
}

const NOTHING: QueueObjects = { queues: [], flavors: [], localQueues: [], workloads: [], hidden: [] };
const SHOWN = 3;

/**
 * Reads Kueue's queues and what waits in them: in `namespace` where the account may not list all. Resolves to undefined, after one
 * request, where the host does not serve Kueue. Rejects with KubeError.
 */
export async function readQueues(
  host: ClusterClient,
  namespace: string,
  signal: AbortSignal,
): Promise<QueueObjects | undefined> {
  const resource = await new ServedResource(host, clusterQueues).find(signal);
  if (resource === undefined) return undefined;
  const queues = await readable(listServed(host, resource, signal));
  if (queues === undefined) return { ...NOTHING, hidden: [QUEUES] };
  const apiVersion = apiVersionOf(resource);
  const options = { dropManagedFields: true, signal };
  const [flavors, locals, all] = await Promise.all([
    readable(listAll(host, resourceOf(resourceFlavors, { apiVersion }), options)),
    listWhereAllowed(host, resourceOf(localQueues, { apiVersion }), [namespace], options),
    listWhereAllowed(host, resourceOf(workloads, { apiVersion }), [namespace], options),
  ]);
  return {
    queues,
    flavors: flavors ?? [],
    localQueues: locals.found,
    workloads: all.found,
    hidden: [...(flavors === undefined ? [FLAVORS] : []), ...(locals.isAll && all.isAll ? [] : [OTHER_WORKLOADS])],
  };
}

/** Sums up each queue, what waits in it and what for, in the order of their names. */
export function queueStatuses(objects: QueueObjects, members: HostMembers): QueueStatus[] {
  const ofFlavor = new Map(
    objects.flavors.map((flavor) => [flavor.metadata.name, membersOfFlavor(flavor, members.clusters)]),
  );
  const states = objects.queues.map((queue) => queueState(queue, ofFlavor));
  const queueOf = new Map(objects.localQueues.map((local) => [namespacedName(local), local.spec?.clusterQueue]));
  const waiting = Map.groupBy(
    objects.workloads.filter(isWaiting),
    ({ metadata, spec, status }) =>
      status?.admission?.clusterQueue ?? queueOf.get(`${metadata.namespace}/${spec?.queueName}`),
  );
  return objects.queues
    .map((queue, index) => {
      const { metadata, spec, status } = queue;
      const state = states[index] ?? queueState(queue, ofFlavor);
      const around = { state, queues: states, isStrict: spec?.queueingStrategy === "StrictFIFO", members };
      return {
        ...state,
        followsMembers: metadata.annotations?.[QUOTA_ANNOTATION] === "follow",
        admitted: status?.admittedWorkloads ?? 0,
        pending: pendingIn(queue),
        waiting: firstOf(waiting.get(metadata.name) ?? []).map((workload) => waitingWorkload(workload, around)),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function pendingIn({ status }: Stored<ClusterQueue>): number {
  const { pendingWorkloads = 0, reservingWorkloads = 0, admittedWorkloads = 0 } = status ?? {};
  return pendingWorkloads + Math.max(0, reservingWorkloads - admittedWorkloads);
}

/** Returns those that wait longest; those that Kueue leaves alone come last. */
function firstOf(waiting: readonly Stored<Workload>[]): Stored<Workload>[] {
  const byWait = (a: Stored<Workload>, b: Stored<Workload>): number => waitsSince(a).localeCompare(waitsSince(b));
  return waiting
    .toSorted((a, b) => Number(isDeactivated(a)) - Number(isDeactivated(b)) || byWait(a, b))
    .slice(0, SHOWN);
}
