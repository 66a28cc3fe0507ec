import type { DevicesStatus } from "../api/cluster-status.ts";
import type { Amounts } from "../api/quantity.ts";

/** The resource that stands for a DeviceClass itself (resourceapi.ResourceDeviceClassPrefix). */
const CLASS_PREFIX = "deviceclass.resource.kubernetes.io/";

/** Says what a member lacks for the requests of a claim, each with the DeviceClasses of which one is enough. */
export function lackFor(
  { served, classes, drivers }: DevicesStatus,
  claim: string,
  requests: readonly (readonly string[])[],
): string | undefined {
  if (!served) return `does not serve resource.k8s.io/v1, which ${claim} needs`;
  const lackOf = (name: string): string | undefined => {
    const found = classes.find((one) => one.name === name);
    if (found === undefined) return `has no DeviceClass ${name}, which ${claim} asks for`;
    const { driver } = found;
    if (driver === undefined || drivers.includes(driver)) return undefined;
    return `has no devices of driver ${driver}, which ${claim} asks for by DeviceClass ${name}`;
  };
  for (const alternatives of requests) {
    const lacks = alternatives.map(lackOf);
    if (lacks.length > 0 && !lacks.includes(undefined)) return lacks[0];
  }
  return undefined;
}

/** Returns the extended resources of which no node has any, and which a DeviceClass with devices offers. */
export function deviceResources(largestNode: Amounts, devices: DevicesStatus | undefined): ReadonlySet<string> {
  const offered = (devices?.classes ?? [])
    .filter(({ driver }) => driver === undefined || devices?.drivers.includes(driver))
    .flatMap(({ name, extendedResource }) => [`${CLASS_PREFIX}${name}`, extendedResource ?? []].flat());
  return new Set(offered.filter((resource) => (largestNode[resource] ?? 0) === 0));
}

/** Returns the amounts without a limit for these resources: only the member's scheduler knows which devices are left. */
export function unlimited(amounts: Amounts, resources: ReadonlySet<string>): Amounts {
  if (resources.size === 0) return amounts;
  return { ...amounts, ...Object.fromEntries([...resources].map((name) => [name, Number.POSITIVE_INFINITY])) };
}
