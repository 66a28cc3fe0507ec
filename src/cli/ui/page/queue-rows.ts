import { amountText } from "../../../api/wording.ts";
import type { WaitingWorkload } from "../../explain/queue-waiting.ts";
import type { QueueStatus } from "../../explain/queues.ts";
import { shortestReason } from "../../explain/reasons.ts";
import { linkTo } from "./route.ts";

/** A resource of a flavor of a queue, as it is shown. */
export interface QuotaRow {
  readonly key: string;
  readonly flavor: string;
  readonly members: readonly string[];
  readonly resource: string;
  readonly used: string;
  readonly quota: string;
}

/** Returns a row for each quota of the queue. */
export function quotaRows({ flavors }: QueueStatus): QuotaRow[] {
  return flavors.flatMap(({ name: flavor, members, quotas }) =>
    quotas.map(({ resource, used, nominal }) => ({
      key: `${flavor} ${resource}`,
      flavor,
      members,
      resource,
      used: amountText(resource, used),
      quota: amountText(resource, nominal),
    })),
  );
}

/** Returns the link of a workload that waits: of the object that Kueue holds back. Undefined: the page has no view of it. */
export function waitingLink({ kind, namespace, name }: WaitingWorkload): string | undefined {
  if (kind === "Workload") return undefined;
  return kind === "Pod" ? linkTo(["pods", namespace, name]) : linkTo(["workloads", kind, namespace, name]);
}

/** Returns the queues in which something waits, or which admit nothing, those with the most first. */
export function waitingQueues(queues: readonly QueueStatus[]): QueueStatus[] {
  return queues
    .filter(({ pending, stopped, waiting }) => pending + waiting.length > 0 || stopped !== undefined)
    .sort((a, b) => b.pending - a.pending || (a.name < b.name ? -1 : 1));
}

/** Returns the shortest reason why the queue has workloads that wait. Undefined if none does. */
export function whyQueued({ stopped, waiting: [first] }: QueueStatus): string | undefined {
  if (stopped !== undefined) return stopped;
  return first && (first.waitsFor ?? first.why.map(shortestReason)[0]);
}

/** Returns the names of the queues of which a flavor selects the member. */
export function queuesOf(member: string, queues: readonly QueueStatus[]): string[] {
  return queues
    .filter(({ flavors }) => flavors.some(({ members }) => members.includes(member)))
    .map(({ name }) => name);
}
