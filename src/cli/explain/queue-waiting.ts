import type { Stored } from "../../api/kubernetes.ts";
import { type CheckEntry, isTrue, kueueCondition, type Workload } from "../../api/kueue-workload.ts";
import { type Amounts, addAmounts, exceeds, parseAmounts } from "../../api/quantity.ts";
import { amountText } from "../../api/wording.ts";
import { podRequests } from "../../placement/requests.ts";
import { type HostMembers, memberAmong, notReady } from "./members.ts";

interface QueueFlavor {
  readonly name: string;
  /** Members that the flavor's node labels select. Empty: its pods stay on the host, or its labels may not be read. */
  readonly members: readonly string[];
  /** The amount of a resource that workloads of the queue hold, and the queue's quota, in cores, bytes or pieces. */
  readonly quotas: readonly { readonly resource: string; readonly used: number; readonly nominal: number }[];
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

/** The queue of a workload, and what it depends on. */
export interface QueueSurroundings {
  readonly queue: QueueState;
  /** All queues, which may lend in a cohort. */
  readonly queues: readonly QueueState[];
  /** The queue admits one after the other. */
  readonly isStrict: boolean;
  readonly members: HostMembers;
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
  const evicted = isTrue(workload, "Evicted") ? kueueCondition(workload, "Evicted")?.lastTransitionTime : undefined;
  return evicted ?? workload.metadata.creationTimestamp ?? "";
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
    why: [...new Set(reasonsOf(workload).filter((reason) => reason !== undefined))],
    ...(waitsFor === undefined ? {} : { waitsFor }),
  };
}

function reasonsOf(workload: Workload): (string | undefined)[] {
  const { status: evicted, message: why } = kueueCondition(workload, "Evicted") ?? {};
  const quota = kueueCondition(workload, "QuotaReserved");
  return [
    evicted === "True" && why !== undefined ? `was evicted: ${why}` : undefined,
    ...openChecks(workload).map(({ name, message }) => (message ? `admission check ${name}: ${message}` : undefined)),
    quota?.status === "False" ? quota.message : undefined,
  ];
}

function openChecks({ status }: Workload): CheckEntry[] {
  return (status?.admissionChecks ?? []).filter(({ state }) => state !== "Ready");
}

function whatFrees(workload: Workload, { queue, queues, isStrict, members }: QueueSurroundings): string | undefined {
  if (isDeactivated(workload)) return "is deactivated: Kueue leaves it alone until its Workload has spec.active: true";
  if (queue.stopped !== undefined) return `waits for queue ${queue.name}: ${queue.stopped}`;
  const requeueAt = workload.status?.requeueState?.requeueAt;
  if (requeueAt !== undefined && kueueCondition(workload, "Requeued")?.status === "False") {
    return `is queued again at ${requeueAt}`;
  }
  if (isTrue(workload, "QuotaReserved")) {
    const checks = openChecks(workload).map(({ name }) => name);
    return checks.length === 0 ? undefined : `has quota, and waits for admission check ${checks.join(", ")}`;
  }
  const short = Object.entries(requestsOf(workload)).flatMap((request) => shortage(request, queue, queues));
  if (short.length > 0) {
    const closed = new Set(short.flatMap(({ flavors }) => flavors).flatMap((flavor) => flavor.members));
    const waits = `waits for ${short.map(({ text }) => text).join(", and ")}`;
    return [waits, ...[...closed].flatMap((name) => closedText(name, members))].join("; ");
  }
  return isStrict ? "waits for those before it: the queue is StrictFIFO" : undefined;
}

/** Returns the flavors of the queue that all have too little of a resource, and how much. Empty: one has enough, or none has quota of it. */
function shortage(
  [resource, amount]: readonly [string, number],
  queue: QueueState,
  queues: readonly QueueState[],
): { readonly text: string; readonly flavors: readonly QueueFlavor[] }[] {
  const { cohort } = queue;
  const lenders = cohort === undefined ? [queue] : queues.filter((other) => other.cohort === cohort);
  const quotasOf = ({ quotas }: QueueFlavor) => quotas.filter((quota) => quota.resource === resource);
  const flavors = queue.flavors.filter((flavor) => quotasOf(flavor).length > 0);
  const offers = flavors.map(({ name }) => {
    const lent = lenders.flatMap((lender) => lender.flavors.filter((flavor) => flavor.name === name));
    const [used, nominal] = lent
      .flatMap(quotasOf)
      .reduce(([ofUsed, ofAll], quota) => [ofUsed + quota.used, ofAll + quota.nominal], [0, 0]);
    return { used, nominal };
  });
  if (offers.length === 0 || offers.some(({ used, nominal }) => !exceeds(amount, nominal - used))) return [];
  const amounts = offers.map(({ used, nominal }) => {
    return `${amountText(resource, used)} of ${amountText(resource, nominal)}`;
  });
  const holder = cohort === undefined ? `queue ${queue.name}` : `cohort ${cohort}`;
  const wanted = `${amountText(resource, amount)} ${resource} of flavor ${flavors.map(({ name }) => name).join(" or ")}`;
  const nominals = offers.map(({ nominal }) => amountText(resource, nominal));
  const text = offers.every(({ nominal }) => exceeds(amount, nominal))
    ? `${wanted}: more than the ${nominals.join(" and ")} of ${holder}`
    : `${wanted}: ${amounts.join(" and ")} are used by ${holder}`;
  return [{ text, flavors }];
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
