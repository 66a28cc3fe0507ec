import { defined } from "../../api/defined.ts";
import { QUOTA_ANNOTATION } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterQueue, LocalQueue, ResourceFlavor } from "../../api/kueue.ts";
import type { Workload } from "../../api/kueue-workload.ts";
import { parseAmounts } from "../../api/quantity.ts";
import { clusterQueues, localQueues, resourceFlavors, workloads } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { resourceOf, ServedResource } from "../../kube/optional-resource.ts";
import { apiVersionOf } from "../../kube/resources.ts";
import { flavorOf, hasNodesFor, selectsMembers } from "../../placement/flavors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { SimulatedMember } from "../../simulation/simulated-member.ts";
import { FLAVORS, type Hidden, OTHER_WORKLOADS, QUEUES } from "../shared/hidden.ts";
import { listServed, listWhereAllowed, namespacedName, readable } from "../shared/reading.ts";
import type { HostMembers } from "./members.ts";
import {
  isDeactivated,
  isWaiting,
  type QueueState,
  type WaitingWorkload,
  waitingWorkload,
  waitsSince,
} from "./queue-waiting.ts";

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

type InQueues = Omit<QueueObjects, "queues">;

const NOTHING: QueueObjects = { queues: [], flavors: [], localQueues: [], workloads: [], hidden: [] };
// A host may have thousands of Workloads, also ended ones, and no selector finds those that wait.
const LIST_EVERY_MS = 10_000;

export interface QueueReaderOptions {
  readonly host: ClusterClient;
  /** Whose objects are read where the account may not list all. */
  readonly namespace: string;
  readonly clock: Pick<Clock, "now">;
}

/** Reads Kueue's queues, as often as somebody watches them, and what waits in them every ten seconds at most. */
export class QueueReader {
  readonly #options: QueueReaderOptions;
  readonly #served: ServedResource<ClusterQueue>;
  #listed: { readonly at: number; readonly inQueues: InQueues } | undefined;

  constructor(options: QueueReaderOptions) {
    this.#options = options;
    this.#served = new ServedResource(options.host, clusterQueues);
  }

  /** Resolves to undefined, after one request, where the host does not serve Kueue. Rejects with KubeError. */
  async read(signal: AbortSignal): Promise<QueueObjects | undefined> {
    const { host } = this.#options;
    const resource = await this.#served.find(signal);
    if (resource === undefined) return undefined;
    const queues = await readable(listServed(host, resource, signal));
    if (queues === undefined) return { ...NOTHING, hidden: [QUEUES] };
    if (queues.length === 0) return NOTHING;
    return { queues, ...(await this.#inQueues(apiVersionOf(resource), signal)) };
  }

  async #inQueues(apiVersion: string, signal: AbortSignal): Promise<InQueues> {
    const { host, namespace, clock } = this.#options;
    const now = clock.now();
    if (this.#listed !== undefined && now - this.#listed.at < LIST_EVERY_MS) return this.#listed.inQueues;
    const options = { dropManagedFields: true, signal };
    const [flavors, locals, all] = await Promise.all([
      readable(listAll(host, resourceOf(resourceFlavors, { apiVersion }), options)),
      listWhereAllowed(host, resourceOf(localQueues, { apiVersion }), [namespace], options),
      listWhereAllowed(host, resourceOf(workloads, { apiVersion }), [namespace], options),
    ]);
    const inQueues = {
      flavors: flavors ?? [],
      localQueues: locals.found,
      workloads: all.found.filter(isWaiting),
      hidden: [...(flavors === undefined ? [FLAVORS] : []), ...(locals.isAll && all.isAll ? [] : [OTHER_WORKLOADS])],
    };
    this.#listed = { at: now, inQueues };
    return inQueues;
  }
}

/** Sums up each queue, what waits in it and what for, in the order of their names. `shown`: the most that are told of a queue. */
export function queueStatuses(objects: QueueObjects, members: HostMembers, shown: number): QueueStatus[] {
  const ofFlavor = membersOfFlavors(objects.flavors, members);
  const sorted = objects.queues.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  const states = sorted.map((queue) => ({ queue, state: queueState(queue, ofFlavor) }));
  const queues = states.map(({ state }) => state);
  const queueOf = new Map(objects.localQueues.map((local) => [namespacedName(local), local.spec?.clusterQueue]));
  const waiting = Map.groupBy(
    objects.workloads.filter(isWaiting),
    ({ metadata, spec, status }) =>
      status?.admission?.clusterQueue ?? queueOf.get(`${metadata.namespace}/${spec?.queueName}`),
  );
  return states.map(({ queue: { metadata, spec, status }, state }) => {
    const around = { queue: state, queues, isStrict: spec?.queueingStrategy === "StrictFIFO", members };
    const { pendingWorkloads = 0, reservingWorkloads = 0, admittedWorkloads = 0 } = status ?? {};
    return {
      ...state,
      followsMembers: metadata.annotations?.[QUOTA_ANNOTATION] === "follow",
      admitted: admittedWorkloads,
      pending: pendingWorkloads + Math.max(0, reservingWorkloads - admittedWorkloads),
      waiting: firstOf(waiting.get(metadata.name) ?? [], shown).map((workload) => waitingWorkload(workload, around)),
    };
  });
}

/** Returns the members that each flavor selects, by its name: as the controller does, by what their Clusters say of nodes. */
function membersOfFlavors(
  flavors: readonly Stored<ResourceFlavor>[],
  { clusters }: Pick<HostMembers, "clusters">,
): ReadonlyMap<string, readonly string[]> {
  const candidates = clusters.map((cluster) => new SimulatedMember(cluster, undefined).candidate());
  const entries = flavors.map(flavorOf).map((flavor): [string, string[]] => {
    const selected = selectsMembers(flavor, candidates) ? candidates : [];
    return [flavor.name, selected.filter((candidate) => hasNodesFor(flavor, candidate)).map(({ name }) => name)];
  });
  return new Map(entries);
}

/** Sums up a queue. `members` has those of each flavor. */
function queueState(
  { metadata, spec, status }: Stored<ClusterQueue>,
  members: ReadonlyMap<string, readonly string[]>,
): QueueState {
  const active = status?.conditions?.find(({ type }) => type === "Active");
  const flavors = (spec?.resourceGroups ?? []).flatMap((group) => group.flavors ?? []);
  const used = (flavor: string, resource: string): string | number => {
    const { resources } = status?.flavorsReservation?.find(({ name }) => name === flavor) ?? {};
    return resources?.find(({ name }) => name === resource)?.total ?? 0;
  };
  const amount = (resource: string, written: string | number): number => {
    return parseAmounts({ [resource]: written })[resource] ?? 0;
  };
  return {
    name: metadata.name,
    ...defined({ cohort: spec?.cohortName }),
    ...(active?.status === "False" ? { stopped: active.message ?? "it is not active" } : {}),
    flavors: flavors.map(({ name, resources = [] }) => ({
      name,
      members: members.get(name) ?? [],
      quotas: resources.map(({ name: resource, nominalQuota = 0 }) => ({
        resource,
        used: amount(resource, used(name, resource)),
        nominal: amount(resource, nominalQuota),
      })),
    })),
  };
}

/** Returns those that wait longest; those that Kueue leaves alone come last. */
function firstOf(waiting: readonly Stored<Workload>[], shown: number): Stored<Workload>[] {
  const byWait = (a: Stored<Workload>, b: Stored<Workload>): number => waitsSince(a).localeCompare(waitsSince(b));
  return waiting
    .toSorted((a, b) => Number(isDeactivated(a)) - Number(isDeactivated(b)) || byWait(a, b))
    .slice(0, shown);
}
