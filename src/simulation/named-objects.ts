import type { AnyObject } from "../api/delegated-type.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { FOLLOWED_RULES } from "../copies/followed-rules.ts";
import { allDependenciesOf, type DependencyKey, dependencyKey } from "../copies/named-by-pods.ts";
import { lackFor } from "../placement/devices.ts";
import type { Needs } from "../placement/needs.ts";
import { type FollowedObjects, followedBy } from "../scheduling/followed-objects.ts";
import type { SimulatedMember } from "./simulated-member.ts";

/** The objects that pods name, claims for storage left out. */
export interface NamedObjects {
  /** Types whose objects follow pods. Absent: none. */
  readonly followed?: readonly FollowedObjects[];
  /** Objects of these types. Those that are not known hinder no pod. */
  readonly objects?: ReadonlyMap<DependencyKey, Stored<AnyObject>>;
  /** Objects that the host lacks. Absent: nothing is missing. */
  readonly missing?: ReadonlySet<DependencyKey>;
}

/** The DeviceClasses that an object asks a member for. */
interface Demand {
  readonly by: string;
  readonly deviceClasses: readonly (readonly string[])[];
}

/** Returns the needs of the objects that a pod names. Undefined if every member can give it what it needs. */
export function namedNeeds(
  proxy: Stored<Pod>,
  { followed = [], objects, missing }: NamedObjects,
  memberOf: (name: string) => SimulatedMember | undefined,
): Needs | undefined {
  const named = followedBy(proxy, followed);
  const lacking = [...allDependenciesOf(proxy), ...named].find((one) => {
    return !one.optional && missing?.has(dependencyKey(one)) === true;
  });
  if (lacking !== undefined) return { state: "missing", ...lacking.missing };
  const demands: Demand[] = [];
  for (const one of named) {
    const object = objects?.get(dependencyKey(one));
    const { obstacle, deviceClasses } = FOLLOWED_RULES[one.kind] ?? {};
    if (object === undefined) continue;
    const kind = followed.find(({ type }) => type === one.kind)?.resource.kind ?? one.kind;
    const why = obstacle?.(object);
    if (why !== undefined) {
      return { state: "missing", reason: "NotPlaced", message: `${kind} ${JSON.stringify(one.name)} ${why}` };
    }
    if (deviceClasses !== undefined) demands.push({ by: `${kind} ${one.name}`, deviceClasses: deviceClasses(object) });
  }
  if (demands.length === 0) return undefined;
  return {
    state: "there",
    in: (name) => {
      const devices = memberOf(name)?.devicesForClaims();
      if (devices === undefined) return "prepared";
      const refused = demands.flatMap(({ by, deviceClasses }) => lackFor(devices, by, deviceClasses) ?? [])[0];
      return refused === undefined ? "prepared" : { refused };
    },
  };
}
