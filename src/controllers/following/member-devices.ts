import type { AnyObject } from "../../api/delegated-type.ts";
import { jsonEqual } from "../../api/json.ts";
import type { Member } from "../../clusters/member.ts";
import { driverOf } from "../../copies/resource-claims.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import type { Resource } from "../../kube/resources.ts";
import type { Preparation } from "../../placement/needs.ts";
import type { Clock } from "../../runtime/clock.ts";
import { KeyedTimers } from "../../runtime/keyed-timers.ts";
import type { Logger } from "../../telemetry/logger.ts";

export interface MemberDevicesOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when members may have another answer for pods that wait. */
  readonly onChange: () => void;
}

/** DeviceClasses by name, each with its driver if that is known, and the drivers that have published devices. */
interface Devices {
  readonly isServed: boolean;
  readonly classes: Readonly<Record<string, string>>;
  readonly drivers: readonly string[];
}

interface Known {
  isReading: boolean;
  /** Epoch ms. */
  readAt: number;
  /** Undefined while the member was never read, or could not be. */
  devices: Devices | undefined;
}

const GROUP = { group: "resource.k8s.io", version: "v1", namespaced: false };
const deviceClasses: Resource<AnyObject> = { ...GROUP, plural: "deviceclasses", kind: "DeviceClass" };
const resourceSlices: Resource<AnyObject> = { ...GROUP, plural: "resourceslices", kind: "ResourceSlice" };
/** Operators install drivers rarely, and pods that wait for one wait for minutes already. */
const FRESH_MS = 60_000;
const UNKNOWN_DRIVER = "";

/** Knows which devices members have for claims. A member is read while pods with claims wait, at most once a minute. */
export class MemberDevices {
  readonly #options: MemberDevicesOptions;
  readonly #known = new WeakMap<Member, Known>();
  readonly #timers: KeyedTimers<"again">;
  readonly #stop = new AbortController();

  constructor(options: MemberDevicesOptions) {
    this.#options = options;
    this.#timers = new KeyedTimers(options.clock);
  }

  stop(): void {
    this.#timers.stop();
    this.#stop.abort();
  }

  /** Says what the member lacks for requests, each with the DeviceClasses of which one is enough. */
  preparationFor(member: Member, claim: string, requests: readonly (readonly string[])[]): Preparation {
    const known = this.#known.get(member) ?? { isReading: false, readAt: Number.NEGATIVE_INFINITY, devices: undefined };
    this.#known.set(member, known);
    const isFresh = this.#options.clock.now() - known.readAt < FRESH_MS;
    if (!isFresh && !known.isReading && member.reachable) void this.#read(member, known);
    const { devices, readAt } = known;
    // The member's scheduler has the last word.
    if (devices === undefined) return Number.isFinite(readAt) ? "prepared" : "unprepared";
    const refused = lackFor(devices, claim, requests);
    return refused === undefined ? "prepared" : { refused };
  }

  async #read(member: Member, known: Known): Promise<void> {
    const { clock, log, onChange } = this.#options;
    const { signal } = this.#stop;
    const { devices: before, readAt } = known;
    known.isReading = true;
    try {
      known.devices = await readDevices(member.client, signal);
    } catch (error) {
      known.devices = undefined;
      log.debug({ err: error, cluster: member.name }, "the devices of a member cannot be read");
    }
    known.isReading = false;
    known.readAt = clock.now();
    if (signal.aborted) return;
    if (!Number.isFinite(readAt) || !jsonEqual(before, known.devices)) onChange();
    this.#timers.start("again", FRESH_MS, onChange);
  }
}

/** Rejects with KubeError. */
async function readDevices(client: ClusterClient, signal: AbortSignal): Promise<Devices> {
  const classes: Record<string, string> = Object.create(null);
  try {
    for (const found of await listAll(client, deviceClasses, { signal })) {
      classes[found.metadata.name] = driverOf(found) ?? UNKNOWN_DRIVER;
    }
  } catch (error) {
    if (isKubeError(error, "NotFound")) return { isServed: false, classes, drivers: [] };
    throw error;
  }
  const drivers: string[] = [];
  for (const driver of new Set(Object.values(classes))) {
    if (driver === UNKNOWN_DRIVER) continue;
    const { items } = await client.list(resourceSlices, { fieldSelector: `spec.driver=${driver}`, limit: 1, signal });
    if (items.length > 0) drivers.push(driver);
  }
  return { isServed: true, classes, drivers };
}

function lackFor(devices: Devices, claim: string, requests: readonly (readonly string[])[]): string | undefined {
  const { isServed, classes, drivers } = devices;
  if (!isServed) return `does not serve resource.k8s.io/v1, which ${claim} needs`;
  const lackOf = (name: string): string | undefined => {
    const driver = classes[name];
    if (driver === undefined) return `has no DeviceClass ${name}, which ${claim} asks for`;
    if (driver === UNKNOWN_DRIVER || drivers.includes(driver)) return undefined;
    return `has no devices of driver ${driver}, which ${claim} asks for by DeviceClass ${name}`;
  };
  for (const alternatives of requests) {
    const lacks = alternatives.map(lackOf);
    if (lacks.length > 0 && !lacks.includes(undefined)) return lacks[0];
  }
  return undefined;
}
