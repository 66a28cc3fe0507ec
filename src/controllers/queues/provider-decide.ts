import { withTransitionTime } from "../../api/conditions.ts";
import { type Stored, timestamp } from "../../api/kubernetes.ts";
import type { CapacityProvider, CapacityProviderStatus, NormalizedFlavor } from "../../api/kueue.ts";
import { addAmounts, writeQuantity } from "../../api/quantity.ts";
import type { Decision } from "../../runtime/requeue.ts";
import type { FlavorCapacity } from "./capacity.ts";
import { LOOK_EVERY_MS, rounded } from "./quota-decide.ts";

/** `spec.controllerName` of the CapacityProviders that Legation answers to. */
export const MEMBERS_PROVIDER = "legation.dev/members";

const SYNCHRONIZED = "CapacitySynchronized";
// Limits of the CapacityProvider's schema.
const MOST_RESOURCES = 64;

export interface ObservedProvider {
  readonly provider: Stored<CapacityProvider>;
  /** Undefined before members were read. */
  readonly capacities: ReadonlyMap<string, FlavorCapacity> | undefined;
  readonly heldUntil: (content: string) => number | undefined;
}

export interface ProviderAction {
  readonly type: "status";
  readonly status: CapacityProviderStatus;
}

/** Publishes what members have for the provider's flavors. */
export function decide(
  { provider, capacities, heldUntil }: ObservedProvider,
  now: number,
  wall: number,
): Decision<ProviderAction> {
  const requeueAt = now + LOOK_EVERY_MS;
  if (capacities === undefined) return { actions: [], outcome: "MembersUnread", requeueAt };
  const wanted = statusOf(provider, capacities);
  const content = statusContent(wanted);
  if (content === statusContent(provider.status ?? {})) return { actions: [], outcome: "InStep", requeueAt };
  const held = heldUntil(content);
  if (held !== undefined) return { actions: [], outcome: "Held", requeueAt: Math.min(held, requeueAt) };
  return { actions: [{ type: "status", status: withTimes(wanted, provider, wall) }], outcome: "Written", requeueAt };
}

/** Returns what a status says, without times. */
export function statusContent({ capacity, conditions = [] }: CapacityProviderStatus): string {
  const own = conditions.find(({ type }) => type === SYNCHRONIZED);
  const flavors = capacity?.flavors.map(({ name, resources }) => [name, Object.entries(resources).sort()]);
  return JSON.stringify([flavors, own?.status, own?.reason, own?.message]);
}

/** Capacity that pods hold where no others may follow is capacity: to publish less would have Kueue take theirs. */
function statusOf(
  { metadata, spec, status }: Stored<CapacityProvider>,
  capacities: ReadonlyMap<string, FlavorCapacity>,
): CapacityProviderStatus {
  const flavors: NormalizedFlavor[] = [];
  const unknown: string[] = [];
  for (const { name } of spec?.orchestratedFlavors ?? []) {
    const capacity = capacities.get(name);
    if (capacity === undefined) {
      unknown.push(name);
      continue;
    }
    const total = { ...capacity.free };
    for (const staying of capacity.staying.values()) addAmounts(total, staying);
    const amounts = Object.entries(total).slice(0, MOST_RESOURCES);
    // A flavor without any resource is not valid.
    const resources = amounts.map(([resource, amount]) => [
      resource,
      writeQuantity(resource, rounded(resource, amount)),
    ]);
    flavors.push({ name, resources: resources.length === 0 ? { cpu: "0" } : Object.fromEntries(resources) });
  }
  const condition =
    unknown.length === 0
      ? { status: "True", reason: "Synchronized", message: "members' allocatable, less what others use there" }
      : {
          status: "False",
          reason: "Misconfigured",
          message: `no ResourceFlavor that selects members is named ${unknown.join(", ")}; give it a node label of a Cluster, such as legation.dev/cluster`,
        };
  const others = (status?.conditions ?? []).filter(({ type }) => type !== SYNCHRONIZED);
  const own = { type: SYNCHRONIZED, ...condition, observedGeneration: metadata.generation ?? 0 };
  return { capacity: { flavors }, conditions: [...others, own] };
}

function withTimes(
  status: CapacityProviderStatus,
  { status: shown }: CapacityProvider,
  wall: number,
): CapacityProviderStatus {
  const now = timestamp(wall);
  const conditions = status.conditions?.map((condition) => withTransitionTime(condition, shown?.conditions, now)) ?? [];
  return { ...status, conditions };
}
