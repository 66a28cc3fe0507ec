import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterQueue, ResourceGroups } from "../../api/kueue.ts";
import { type Amounts, exceeds, parseAmounts, writeQuantity } from "../../api/quantity.ts";
import { isInBytes } from "../../api/wording.ts";
import type { Decision } from "../../runtime/requeue.ts";
import type { FlavorCapacity } from "./capacity.ts";

export interface FollowedFlavor {
  readonly capacity: FlavorCapacity;
  /** The queue's part of it, from 0 to 1. */
  readonly share: number;
}

export interface ObservedQueue {
  readonly queue: Stored<ClusterQueue>;
  /** The annotations cannot be read; absent: they can. */
  readonly problem?: string;
  readonly floor: Amounts;
  /** The flavors of the queue that select members, by name. Undefined while members are being read. */
  readonly flavors: ReadonlyMap<string, FollowedFlavor> | undefined;
  /** Returns the time until which such a write is held; epoch ms. */
  readonly heldUntil: (content: string) => number | undefined;
}

export interface QuotaChange {
  readonly flavor: string;
  readonly resource: string;
  readonly from: string | number | undefined;
  readonly to: string;
}

export type QuotaAction =
  | { readonly type: "tell"; readonly reason: "InvalidQuota" | "QuotaReduced"; readonly message: string }
  | { readonly type: "write"; readonly changes: readonly QuotaChange[] };

/** What pods outside queues and other hosts use changes without an event. */
export const LOOK_EVERY_MS = 10_000;
const MEBI = 2 ** 20;

export function decide(observed: ObservedQueue, now: number): Decision<QuotaAction> {
  const { problem, flavors } = observed;
  if (problem !== undefined) {
    return { actions: [{ type: "tell", reason: "InvalidQuota", message: problem }], outcome: "InvalidQuota" };
  }
  const requeueAt = now + LOOK_EVERY_MS;
  if (flavors === undefined) return { actions: [], outcome: "MembersUnread", requeueAt };
  const changes = changesOf(observed, flavors);
  if (changes.length === 0) return { actions: [], outcome: "InStep", requeueAt };
  const held = observed.heldUntil(contentOf(changes));
  if (held !== undefined) return { actions: [], outcome: "Held", requeueAt: Math.min(held, requeueAt) };
  const reduced = reductionOf(changes, flavors);
  const told: QuotaAction[] = reduced === undefined ? [] : [{ type: "tell", reason: "QuotaReduced", message: reduced }];
  return { actions: [{ type: "write", changes }, ...told], outcome: "Written", requeueAt };
}

/** Returns what a write says, whatever the queue says now. */
export function contentOf(changes: readonly QuotaChange[]): string {
  return JSON.stringify(changes.map(({ flavor, resource, to }) => [flavor, resource, to]));
}

export function changedGroups({ spec }: ClusterQueue, changes: readonly QuotaChange[]): ResourceGroups {
  return (spec?.resourceGroups ?? []).map(({ flavors = [], ...group }) => ({
    ...group,
    flavors: flavors.map(({ resources = [], ...flavor }) => ({
      ...flavor,
      resources: resources.map((quota) => {
        const change = changes.find(({ flavor: of, resource }) => of === flavor.name && resource === quota.name);
        return change === undefined ? quota : { ...quota, nominalQuota: change.to };
      }),
    })),
  }));
}

function changesOf({ queue, floor }: ObservedQueue, flavors: ReadonlyMap<string, FollowedFlavor>): QuotaChange[] {
  const groups = queue.spec?.resourceGroups ?? [];
  return groups.flatMap(({ flavors: written = [] }) =>
    written.flatMap(({ name: flavor, resources = [] }) => {
      const followed = flavors.get(flavor);
      if (followed === undefined) return [];
      const staying = followed.capacity.staying.get(queue.metadata.name) ?? {};
      return resources.flatMap(({ name: resource, nominalQuota: from }) => {
        const amount = followed.share * (followed.capacity.free[resource] ?? 0) + (staying[resource] ?? 0);
        const wanted = Math.max(rounded(resource, amount), floor[resource] ?? 0);
        if (from !== undefined && parseAmounts({ [resource]: from })[resource] === wanted) return [];
        return [{ flavor, resource, from, to: writeQuantity(resource, wanted) }];
      });
    }),
  );
}

/** Rounds down to what Kueue counts by: thousandths of a core, and mebibytes rather than each byte that some pod requests. */
export function rounded(resource: string, amount: number): number {
  // A sum of decimal fractions may be a little too small.
  const down = (value: number): number => Math.floor(value + 1e-6);
  if (resource === "cpu") return down(amount * 1000) / 1000;
  return isInBytes(resource) ? down(amount / MEBI) * MEBI : down(amount);
}

function reductionOf(
  changes: readonly QuotaChange[],
  flavors: ReadonlyMap<string, FollowedFlavor>,
): string | undefined {
  const reduced = changes.filter(
    ({ flavor, resource, from, to }) =>
      (flavors.get(flavor)?.capacity.closed.size ?? 0) > 0 && exceeds(amountOf(resource, from), amountOf(resource, to)),
  );
  if (reduced.length === 0) return undefined;
  const parts = reduced.map(({ flavor, resource, from, to }) => `${flavor}: ${resource} ${from} -> ${to}`);
  const closed = new Map(reduced.flatMap(({ flavor }) => [...(flavors.get(flavor)?.capacity.closed ?? [])]));
  const why = [...closed].map(([member, message]) => `${member}: ${message}`).join("; ");
  return `less quota of ${parts.join(", ")}; what runs stays, and no more is admitted in ${why}`;
}

function amountOf(resource: string, quantity: string | number | undefined): number {
  return quantity === undefined ? 0 : (parseAmounts({ [resource]: quantity })[resource] ?? 0);
}
