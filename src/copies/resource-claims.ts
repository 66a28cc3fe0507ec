import type { AnyObject } from "../api/delegated-type.ts";
import { isJsonObject, type JsonObject, jsonEqual, valueAt } from "../api/json.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { isBound, isTerminal } from "../pods/pod-state.ts";
import { statusOf } from "./object-status.ts";

/** The delegated pods of an object's namespace. */
export interface ObjectPods {
  readonly proxy: (name: string) => Stored<Pod> | undefined;
  /** An unfinished proxy names the object. Decides only while no member has a copy. */
  readonly isNamed: boolean;
}

/** The scheduler that allocates a claim sets it (resourceapi.Finalizer). */
const ALLOCATED_FINALIZER = "resource.kubernetes.io/delete-protection";

/**
 * Returns the status of a ResourceClaim from the one of its copy: the member's allocation, reserved for proxies. Undefined if it
 * stays as it is.
 */
export function claimStatus(
  claim: Stored<AnyObject>,
  there: JsonObject | undefined,
  { proxy, isNamed }: ObjectPods,
): JsonObject | undefined {
  if (isAllocatedByHost(claim) || claim.metadata.deletionTimestamp !== undefined) return undefined;
  if (there === undefined) return isNamed ? undefined : {};
  const { allocation } = there;
  if (!isJsonObject(allocation)) return {};
  const shown = statusOf(claim) ?? {};
  const isSame = isJsonObject(shown.allocation) && sameDevices(shown.allocation, allocation);
  // The API server takes another allocation only where there is none.
  if (shown.allocation !== undefined && !isSame) return {};
  const reservedFor = reservations(consumersIn(there), consumersIn(shown), proxy);
  const { reservedFor: _, ...rest } = there;
  // The host's API server drops fields that it does not know.
  return {
    ...rest,
    allocation: isSame ? shown.allocation : allocation,
    ...(reservedFor.length > 0 ? { reservedFor } : {}),
  };
}

/** Says why pods in members cannot use a claim, or the claims of a template. Undefined if they can. */
export function claimObstacle(claim: Stored<AnyObject>): string | undefined {
  if (isAllocatedByHost(claim)) return "has devices of this cluster, which only pods on its own nodes can use";
  const path = adminAccessIn(claim.spec, "spec");
  return path && `asks for ${path}, which members give to nobody: remove it`;
}

/** Returns the DeviceClasses of each request of a claim or template. One of them is enough. */
export function deviceClassesOf({ spec }: Stored<AnyObject>): readonly (readonly string[])[] {
  const ofClaim = isJsonObject(spec) && isJsonObject(spec.spec) ? spec.spec : spec;
  return itemsOf(valueAt(ofClaim, ["devices", "requests"])).map(({ exactly, firstAvailable }) => {
    const alternatives = isJsonObject(exactly) ? [exactly] : itemsOf(firstAvailable);
    return alternatives.flatMap(({ deviceClassName: name }) => (typeof name === "string" ? [name] : []));
  });
}

const NAMES_DRIVER = /\bdevice\.driver\s*==\s*(["'])([^"']+)\1/;

/** Returns the driver whose devices a DeviceClass selects. Undefined if its expressions do not simply name one. */
export function driverOf({ spec }: Stored<AnyObject>): string | undefined {
  const selectors = isJsonObject(spec) ? itemsOf(spec.selectors) : [];
  for (const { cel } of selectors) {
    const expression = isJsonObject(cel) && typeof cel.expression === "string" ? cel.expression : "";
    const [, , driver] = /\|\||\?|!/.test(expression) ? [] : (NAMES_DRIVER.exec(expression) ?? []);
    if (driver !== undefined) return driver;
  }
  return undefined;
}

function itemsOf(list: unknown): readonly JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

/** Reports whether the host's scheduler allocated the claim, for pods on the host's own nodes. */
function isAllocatedByHost({ metadata: { finalizers = [] } }: Stored<AnyObject>): boolean {
  return finalizers.includes(ALLOCATED_FINALIZER);
}

/** Returns the field of a claim's or template's spec that asks for admin access. */
function adminAccessIn(value: unknown, path: string): string | undefined {
  const fields: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? value.map((item: unknown, index) => [`${path}[${index}]`, item])
    : isJsonObject(value)
      ? Object.entries(value).map(([field, inside]) => [`${path}.${field}`, inside])
      : [];
  for (const [at, inside] of fields) {
    const found = at.endsWith(".adminAccess") && inside === true ? at : adminAccessIn(inside, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

function sameDevices(one: JsonObject, other: JsonObject): boolean {
  return jsonEqual(devicesOf(one), devicesOf(other));
}

function devicesOf({ devices, nodeSelector }: JsonObject): unknown {
  const results = isJsonObject(devices) ? itemsOf(devices.results) : [];
  const named = results.map(({ request, driver, pool, device }) => ({ request, driver, pool, device }));
  return { named, nodeSelector };
}

interface Consumer {
  readonly resource: "pods";
  readonly name: string;
  readonly uid: string;
}

function consumersIn({ reservedFor }: JsonObject): Consumer[] {
  return itemsOf(reservedFor).flatMap(({ resource, name, uid }): Consumer[] =>
    resource === "pods" && typeof name === "string" && typeof uid === "string" ? [{ resource, name, uid }] : [],
  );
}

/**
 * Returns the proxies of the pods in the member. What the host shows keeps its place: its claim controller reserves the claim for
 * bound proxies itself, and takes pods out that ended.
 */
function reservations(
  there: readonly Consumer[],
  shown: readonly Consumer[],
  proxyOf: ObjectPods["proxy"],
): readonly Consumer[] {
  const proxies = new Map(
    there.flatMap(({ name }): [string, Consumer][] => {
      const proxy = proxyOf(name);
      if (proxy === undefined || isTerminal(proxy)) return [];
      return [[proxy.metadata.uid, { resource: "pods", name, uid: proxy.metadata.uid }]];
    }),
  );
  const kept = shown.filter(({ name, uid }) => {
    if (proxies.has(uid)) return true;
    const proxy = proxyOf(name);
    return proxy?.metadata.uid === uid && isBound(proxy) && !isTerminal(proxy);
  });
  const uids = new Set(kept.map(({ uid }) => uid));
  return [...kept, ...[...proxies.values()].filter(({ uid }) => !uids.has(uid))];
}
