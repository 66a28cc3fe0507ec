import { withTransitionTime } from "../../api/conditions.ts";
import { type Stored, timestamp } from "../../api/kubernetes.ts";
import type { CapacityProvider, CapacityProviderStatus, NormalizedFlavor } from "../../api/kueue.ts";
import { addAmounts, writeQuantity } from "../../api/quantity.ts";
import { capacityProviders } from "../../api/resources.ts";
import type { FlavorCapacity } from "./capacity.ts";
import type { CapacityKind } from "./flavor-capacities.ts";
import { rounded } from "./quotas.ts";

// `spec.controllerName` of the CapacityProviders that Legation answers to.
const MEMBERS_PROVIDER = "legation.dev/members";
const SYNCHRONIZED = "CapacitySynchronized";
// Limits of the CapacityProvider's schema.
const MOST_RESOURCES = 64;

/** Kueue's CapacityProviders that name Legation, which publish what members have. */
export const PROVIDERS: CapacityKind<CapacityProvider> = {
  name: "capacity-providers",
  resource: capacityProviders,
  isAsking: ({ spec }) => spec?.controllerName === MEMBERS_PROVIDER,
  flavorsOf: ({ spec }) => spec?.orchestratedFlavors?.map(({ name }) => name) ?? [],
  changeOf: (provider, capacities, _all, wall) => {
    if (capacities === undefined) return "unknown";
    const status = statusOf(provider, capacities, timestamp(wall));
    const content = statusContent(status);
    if (content === statusContent(provider.status ?? {})) return undefined;
    return { content, body: { status }, subresource: "status" };
  },
};

/** Returns what a status says, without times. */
function statusContent({ capacity, conditions = [] }: CapacityProviderStatus): string {
  const own = conditions.find(({ type }) => type === SYNCHRONIZED);
  const flavors = capacity?.flavors.map(({ name, resources }) => [name, Object.entries(resources).sort()]);
  return JSON.stringify([flavors, own?.status, own?.reason, own?.message]);
}

/** Capacity that pods hold where no others may follow is capacity: to publish less would have Kueue take theirs. */
function statusOf(
  { metadata, spec, status }: Stored<CapacityProvider>,
  capacities: ReadonlyMap<string, FlavorCapacity>,
  now: string,
): CapacityProviderStatus {
  const wanted = spec?.orchestratedFlavors ?? [];
  const flavors = wanted.flatMap(({ name }): NormalizedFlavor[] => {
    const capacity = capacities.get(name);
    if (capacity === undefined) return [];
    const total = { ...capacity.free };
    for (const staying of capacity.staying.values()) addAmounts(total, staying);
    const resources = Object.entries(total)
      .slice(0, MOST_RESOURCES)
      .map(([resource, amount]) => [resource, writeQuantity(resource, rounded(resource, amount))]);
    // A flavor without any resource is not valid.
    return [{ name, resources: resources.length === 0 ? { cpu: "0" } : Object.fromEntries(resources) }];
  });
  const unknown = wanted.map(({ name }) => name).filter((name) => !capacities.has(name));
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
  return { capacity: { flavors }, conditions: [...others, withTransitionTime(own, status?.conditions, now)] };
}
