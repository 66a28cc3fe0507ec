import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterQueue, ResourceFlavor } from "../../api/kueue.ts";
import { isTrue, kueueCondition, type Workload } from "../../api/kueue-workload.ts";
import { type Amounts, addAmounts, exceeds, parseAmounts } from "../../api/quantity.ts";
import { amountText } from "../../api/wording.ts";
import { flavorOf, hasNodesFor, selectsMembers } from "../../placement/flavors.ts";
import { podRequests } from "../../placement/requests.ts";
import { SimulatedMember } from "../../simulation/simulated-member.ts";
import { type HostMembers, memberAmong, notReady } from "./members.ts";

/** A resource of a flavor in cores, bytes or pieces: what workloads of the queue hold, and the queue's quota. */
export interface QueueQuota {
  readonly resource: string;
  readonly used: number;
  readonly nominal: number;
}

export interface QueueFlavor {
  readonly name: string;
  /** Members that the flavor's node labels select. Empty: its pods stay on the host, or its labels may not be read. */
  readonly members: readonly string[];
  readonly quotas: readonly QueueQuota[];
}

export interface QueueState {
  readonly name: string;
  readonly cohort?: string;
  /** Why it admits nothing. Absent: it admits. */
  readonly stopped?: string;
  readonly flavors: readonly QueueFlavor[];
}

export interface WaitingWorkload {
  readonly namespace: string;
  /** The object that Kueue holds back, `Job` say. Of several pods it is the Workload. */
  readonly kind: string;
  readonly name: string;
  readonly workload: string;
  /** When it came, or was evicted last; RFC 3339. */
  readonly since: string;
  /** Reasons in the words of Kueue and of admission checks. */
  readonly why: readonly string[];
  /** The sentence on what would free it, as far as the objects tell. */
  readonly waitsFor?: string;
}

export interface QueueSurroundings {
  readonly state: QueueState;
  /** All queues, which may lend in a cohort. */
  readonly queues: readonly QueueState[];
  /** The queue admits one after the other. */
  readonly isStrict: boolean;
  readonly members: HostMembers;
}

/** Returns the members that each flavor selects, by its name: as the controller does, by what their Clusters say of nodes. */
export function membersOfFlavors(
  flavors: readonly Stored<ResourceFlavor>[],
  { clusters }: Pick<HostMembers, "clusters">,
): ReadonlyMap<string, readonly string[]> {
  const candidates = clusters.map((cluster) => new SimulatedMember(cluster, undefined).candidate());
  const entries = flavors.map(flavorOf).map((flavor): [string, string[]] => {
    const selected = selectsMembers(flavor, candidates)
      ? candidates.filter((candidate) => hasNodesFor(flavor, candidate))
      : [];
    return [flavor.name, selected.map(({ name }) => name)];
  });
  return new Map(entries);
}

/** Sums up a queue. `members` has those of each flavor. */
export function queueState(queue: Stored<ClusterQueue>, members: ReadonlyMap<string, readonly string[]>): QueueState {
  const { metadata, spec, status } = queue;
  const usedOf = new Map(status?.flavorsReservation?.map(({ name, resources = [] }) => [name, totalsOf(resources)]));
  const flavors = (spec?.resourceGroups ?? []).flatMap((group) => group.flavors ?? []);
  const active = kueueCondition(queue, "Active");
  return {
    name: metadata.name,
    ...(spec?.cohortName === undefined ? {} : { cohort: spec.cohortName }),
    ...(active?.status === "False" ? { stopped: active.message ?? "it is not active" } : {}),
    flavors: flavors.map(({ name, resources = [] }) => ({
      name,
      members: members.get(name) ?? [],
      quotas: resources.map(({ name: resource, nominalQuota = 0 }) => ({
        resource,
        used: usedOf.get(name)?.[resource] ?? 0,
        nominal: parseAmounts({ [resource]: nominalQuota })[resource] ?? 0,
      })),
    })),
  };
}

function totalsOf(resources: readonly { readonly name: string; readonly total?: string | number }[]): Amounts {
  return parseAmounts(Object.fromEntries(resources.map(({ name, total = 0 }) => [name, total])));
}

/** Reports whether Kueue has not admitted the workload, and it has not ended. */
export function isWaiting(workload: Workload): boolean {
  return !isTrue(workload, "Admitted") && !isTrue(workload, "Finished");
}

/** Reports whether Kueue leaves the workload alone: somebody, or a check that rejected it, has deactivated it. */
export function isDeactivated({ spec }: Workload): boolean {
  return spec?.active === false;
}

/** Returns when the workload came into its queue, or came back to it. */
export function waitsSince(workload: Stored<Workload>): string {
  const evicted = kueueCondition(workload, "Evicted");
  const since = evicted?.status === "True" ? evicted.lastTransitionTime : undefined;
  return since ?? workload.metadata.creationTimestamp ?? "";
}

export function waitingWorkload(workload: Stored<Workload>, around: QueueSurroundings): WaitingWorkload {
  const { namespace = "", name, ownerReferences = [] } = workload.metadata;
  const [owner] = ownerReferences.length === 1 ? ownerReferences : [];
  const waitsFor = whatFrees(workload, around);
  return {
    namespace,
    kind: owner?.kind ?? "Workload",
    name: owner?.name ?? name,
    workload: name,
    since: waitsSince(workload),
    why: reasonsOf(workload),
    ...(waitsFor === undefined ? {} : { waitsFor }),
  };
}

function reasonsOf(workload: Workload): string[] {
  const evicted = kueueCondition(workload, "Evicted");
  const quota = kueueCondition(workload, "QuotaReserved");
  const checks = openChecks(workload).flatMap(({ name, message = "" }) =>
    message === "" ? [] : [`admission check ${name}: ${message}`],
  );
  const said = [
    ...(evicted?.status === "True" && evicted.message !== undefined ? [`was evicted: ${evicted.message}`] : []),
    ...checks,
    ...(quota?.status === "False" && quota.message !== undefined ? [quota.message] : []),
  ];
  return [...new Set(said)];
}

function openChecks({ status }: Workload): NonNullable<NonNullable<Workload["status"]>["admissionChecks"]> {
  return (status?.admissionChecks ?? []).filter(({ state }) => state !== "Ready");
}

function whatFrees(workload: Workload, { state, queues, isStrict, members }: QueueSurroundings): string | undefined {
  const { status } = workload;
  if (isDeactivated(workload)) return "is deactivated: Kueue leaves it alone until its Workload has spec.active: true";
  if (state.stopped !== undefined) return `waits for queue ${state.name}: ${state.stopped}`;
  const requeueAt = status?.requeueState?.requeueAt;
  if (requeueAt !== undefined && kueueCondition(workload, "Requeued")?.status === "False") {
    return `is queued again at ${requeueAt}`;
  }
  if (isTrue(workload, "QuotaReserved")) {
    const checks = openChecks(workload).map(({ name }) => name);
    return checks.length === 0 ? undefined : `has quota, and waits for admission check ${checks.join(", ")}`;
  }
  const short = shortages(requestsOf(workload), state, queues);
  if (short.length > 0) {
    const closed = new Set(short.flatMap(({ flavors }) => flavors).flatMap((flavor) => flavor.members));
    return [
      `waits for ${short.map(({ text }) => text).join(", and ")}`,
      ...[...closed].flatMap((name) => closedText(name, members)),
    ].join("; ");
  }
  return isStrict ? "waits for those before it: the queue is StrictFIFO" : undefined;
}

interface Shortage {
  readonly text: string;
  readonly flavors: readonly QueueFlavor[];
}

/** Returns the resources that no flavor has enough of. */
function shortages(requests: Amounts, state: QueueState, queues: readonly QueueState[]): Shortage[] {
  const { cohort } = state;
  const lenders = cohort === undefined ? [state] : queues.filter((queue) => queue.cohort === cohort);
  const holder = cohort === undefined ? `queue ${state.name}` : `cohort ${cohort}`;
  return Object.entries(requests).flatMap(([resource, amount]) => {
    const offers = state.flavors.flatMap((flavor) => offerOf(flavor, resource, lenders));
    if (offers.length === 0 || offers.some(({ used, nominal }) => !exceeds(amount, nominal - used))) return [];
    const text = (value: number): string => amountText(resource, value);
    const flavors = offers.map(({ flavor }) => flavor);
    const wanted = `${text(amount)} ${resource}`;
    if (offers.every(({ nominal }) => exceeds(amount, nominal))) {
      const most = offers.map(({ flavor, nominal }) => `${flavor.name} has ${text(nominal)}`).join(", ");
      return [{ text: `${wanted}, more than ${holder} has of any flavor: ${most}`, flavors }];
    }
    const used = offers.map(
      (offer) =>
        `${text(offer.used)} of ${text(offer.nominal)}${offers.length === 1 ? "" : ` of ${offer.flavor.name}`}`,
    );
    const which = offers.length === 1 ? ` of flavor ${flavors[0]?.name}` : "";
    return [{ text: `${wanted}${which}: ${used.join(" and ")} are used by ${holder}`, flavors }];
  });
}

/** Returns what the lenders have and use of a resource of the flavor. Empty: the flavor has no quota of it. */
function offerOf(
  flavor: QueueFlavor,
  resource: string,
  lenders: readonly QueueState[],
): { readonly flavor: QueueFlavor; readonly used: number; readonly nominal: number }[] {
  if (!flavor.quotas.some((quota) => quota.resource === resource)) return [];
  const quotas = lenders
    .flatMap(({ flavors }) => flavors.filter(({ name }) => name === flavor.name))
    .flatMap(({ quotas: all }) => all.filter((quota) => quota.resource === resource));
  const sum = (of: "used" | "nominal"): number => quotas.reduce((total, quota) => total + quota[of], 0);
  return [{ flavor, used: sum("used"), nominal: sum("nominal") }];
}

function requestsOf({ spec, status }: Workload): Amounts {
  const sum: Record<string, number> = {};
  // Kueue's own figures are there once it has tried to admit the workload.
  if (status?.resourceRequests !== undefined) {
    for (const { resources } of status.resourceRequests) addAmounts(sum, parseAmounts(resources));
    return sum;
  }
  for (const { count = 1, template = {} } of spec?.podSets ?? []) addAmounts(sum, podRequests(template), count);
  return sum;
}

function closedText(name: string, members: HostMembers): string[] {
  const member = memberAmong(members, name);
  if (member === undefined) return [];
  const trouble = notReady(member.cluster, member.node);
  if (trouble !== undefined) {
    return [`member ${name} is not ready${trouble.since === undefined ? "" : ` since ${trouble.since}`}`];
  }
  return member.node?.spec?.unschedulable === true ? [`member ${name} is cordoned`] : [];
}
