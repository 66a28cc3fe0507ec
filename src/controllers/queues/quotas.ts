import type { Stored } from "../../api/kubernetes.ts";
import type { ClusterQueue, ResourceGroups } from "../../api/kueue.ts";
import { exceeds, parseAmounts, writeQuantity } from "../../api/quantity.ts";
import { clusterQueues } from "../../api/resources.ts";
import { isInBytes } from "../../api/wording.ts";
import type { FlavorCapacity } from "./capacity.ts";
import type { CapacityKind } from "./flavor-capacities.ts";
import { type QuotaWish, quotaWish } from "./quota-wishes.ts";

type Capacities = ReadonlyMap<string, FlavorCapacity>;

interface QuotaChange {
  readonly flavor: string;
  readonly resource: string;
  readonly from: string | number | undefined;
  readonly to: string;
}

const MEBI = 2 ** 20;

/** Quotas of Kueue's ClusterQueues that ask to follow members. */
export const QUOTAS: CapacityKind<ClusterQueue> = {
  name: "queue-quotas",
  resource: clusterQueues,
  isAsking: ({ metadata = {} }) => quotaWish(metadata) !== undefined,
  flavorsOf: flavorNames,
  changeOf: (queue, capacities, all) => {
    const wish = quotaWish(queue.metadata);
    if (wish === undefined) return undefined;
    if ("problem" in wish) return { reason: "InvalidQuota", message: wish.problem };
    if (capacities === undefined) return "unknown";
    const changes = changesOf(queue, wish, capacities, all);
    if (changes.length === 0) return undefined;
    const reduced = reductionOf(changes, capacities);
    return {
      content: JSON.stringify(changes.map(({ flavor, resource, to }) => [flavor, resource, to])),
      body: { spec: { resourceGroups: changedGroups(queue, changes) } },
      ...(reduced === undefined ? {} : { event: { reason: "QuotaReduced", message: reduced } }),
    };
  },
  contested: {
    reason: "QuotaContested",
    message:
      "another manager of this ClusterQueue changes nominalQuota back, so it does not follow members; " +
      "have it leave spec.resourceGroups alone",
  },
  refused: { reason: "QuotaRefused", message: "quotas that follow members cannot be written" },
};

function changesOf(
  queue: Stored<ClusterQueue>,
  { floor }: QuotaWish,
  capacities: Capacities,
  all: readonly Stored<ClusterQueue>[],
): QuotaChange[] {
  const flavors = (queue.spec?.resourceGroups ?? []).flatMap((group) => group.flavors ?? []);
  return flavors.flatMap(({ name: flavor, resources = [] }) => {
    const capacity = capacities.get(flavor);
    if (capacity === undefined) return [];
    const share = shareOf(queue, flavor, all);
    const staying = capacity.staying.get(queue.metadata.name) ?? {};
    return resources.flatMap(({ name: resource, nominalQuota: from }) => {
      const amount = share * (capacity.free[resource] ?? 0) + (staying[resource] ?? 0);
      const wanted = Math.max(rounded(resource, amount), floor[resource] ?? 0);
      if (from !== undefined && amountOf(resource, from) === wanted) return [];
      return [{ flavor, resource, from, to: writeQuantity(resource, wanted) }];
    });
  });
}

/** Queues that write no share have equal parts of what is left. */
function shareOf({ metadata }: Stored<ClusterQueue>, flavor: string, all: readonly Stored<ClusterQueue>[]): number {
  let left = 1;
  let without = 0;
  let own: number | undefined;
  for (const other of all) {
    const wish = quotaWish(other.metadata);
    if (wish === undefined || "problem" in wish || !flavorNames(other).includes(flavor)) continue;
    if (other.metadata.uid === metadata.uid) own = wish.share;
    if (wish.share === undefined) without += 1;
    else left -= wish.share;
  }
  return own ?? Math.max(0, left) / Math.max(1, without);
}

function flavorNames({ spec }: ClusterQueue): readonly string[] {
  return (spec?.resourceGroups ?? []).flatMap(({ flavors = [] }) => flavors.map(({ name }) => name));
}

function changedGroups({ spec }: ClusterQueue, changes: readonly QuotaChange[]): ResourceGroups {
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

/** Rounds down to what Kueue counts by: thousandths of a core, and mebibytes rather than each byte that some pod requests. */
export function rounded(resource: string, amount: number): number {
  // A sum of decimal fractions may be a little too small.
  const down = (value: number): number => Math.floor(value + 1e-6);
  if (resource === "cpu") return down(amount * 1000) / 1000;
  return isInBytes(resource) ? down(amount / MEBI) * MEBI : down(amount);
}

/** Says what is reduced while members that the flavor selects take no new pods. */
function reductionOf(changes: readonly QuotaChange[], capacities: Capacities): string | undefined {
  const closed = new Map<string, string>();
  const parts = changes.flatMap(({ flavor, resource, from, to }) => {
    const closedOf = capacities.get(flavor)?.closed ?? new Map<string, string>();
    if (closedOf.size === 0 || !exceeds(amountOf(resource, from), amountOf(resource, to))) return [];
    for (const [member, message] of closedOf) closed.set(member, message);
    return [`${flavor}: ${resource} ${from} -> ${to}`];
  });
  if (parts.length === 0) return undefined;
  const why = [...closed].map(([member, message]) => `${member}: ${message}`).join("; ");
  return `less quota of ${parts.join(", ")}; what runs stays, and no more is admitted in ${why}`;
}

function amountOf(resource: string, quantity: string | number = 0): number {
  return parseAmounts({ [resource]: quantity })[resource] ?? 0;
}
