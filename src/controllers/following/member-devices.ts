import type { DeviceClassStatus, DevicesStatus } from "../../api/cluster-status.ts";
import { defined } from "../../api/defined.ts";
import type { AnyObject } from "../../api/delegated-type.ts";
import { valueAt } from "../../api/json.ts";
import type { Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { Registry } from "../../clusters/registry.ts";
import { driverOf } from "../../copies/resource-claims.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ignoring } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { clusterScoped, type Resource } from "../../kube/resources.ts";
import { lackFor } from "../../placement/devices.ts";
import type { Preparation } from "../../placement/needs.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/logger.ts";

export interface MemberDevicesOptions {
  readonly registry: Pick<Registry, "members">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when pods that wait for what a member has may have another answer. */
  readonly onRead: () => void;
}

const deviceClasses: Resource<AnyObject> = clusterScoped("resource.k8s.io", "DeviceClass");
const resourceSlices: Resource<AnyObject> = clusterScoped("resource.k8s.io", "ResourceSlice");
/** Operators install drivers rarely, and pods that wait for one wait for minutes already. */
const EVERY_MS = 60_000;
/** A new pod may come right after the driver that it needs. */
const REFUSED_AFTER_MS = 5_000;
/** Written to the status of a Cluster. Such a member's scheduler decides alone. */
const MOST_CLASSES = 200;
const LONGEST_NAME = 253;

/** Knows which DeviceClasses members have, and which of their drivers have devices. Each is read once a minute, and for new pods that it would be refused for. */
export class MemberDevices {
  readonly #options: MemberDevicesOptions;
  /** Epoch ms. */
  readonly #readAt = new WeakMap<Member, number>();
  readonly #reading = new WeakSet<Member>();
  #timer: Timer | undefined;
  #running: AbortController | undefined;

  constructor(options: MemberDevicesOptions) {
    this.#options = options;
  }

  /** Reads members from now on. No effect if they are read already. */
  start(): void {
    if (this.#running !== undefined) return;
    this.#running = new AbortController();
    this.#readAll();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#running?.abort();
    this.#running = undefined;
    for (const member of this.#options.registry.members()) {
      this.#readAt.delete(member);
      member.devices.known = undefined;
    }
  }

  /** Reads a member that is reachable again, unless it was read before. */
  onConnection(member: Member): void {
    if (!this.#readAt.has(member)) void this.#readFrom(member);
  }

  /** Says what the member lacks for requests, each with the DeviceClasses of which one is enough. */
  preparationFor(member: Member, claim: string, requests: readonly (readonly string[])[]): Preparation {
    const { known } = member.devices;
    const readAt = this.#readAt.get(member);
    if (readAt === undefined) {
      void this.#readFrom(member);
      return "unprepared";
    }
    const refused = known && lackFor(known, claim, requests);
    // The member's scheduler has the last word.
    if (refused === undefined) return "prepared";
    if (this.#options.clock.now() - readAt >= REFUSED_AFTER_MS) void this.#readFrom(member);
    return { refused };
  }

  #readAll(): void {
    const { registry, clock } = this.#options;
    for (const member of registry.members()) void this.#readFrom(member);
    this.#timer = clock.after(EVERY_MS, () => this.#readAll());
  }

  async #readFrom(member: Member): Promise<void> {
    const signal = this.#running?.signal;
    if (signal === undefined || this.#reading.has(member) || !member.reachable) return;
    this.#reading.add(member);
    let devices: DevicesStatus | undefined;
    try {
      devices = await readDevices(member.client, signal);
    } catch (error) {
      this.#options.log.debug({ err: error, cluster: member.name }, "the devices of a member cannot be read");
    }
    this.#reading.delete(member);
    if (signal.aborted) return;
    const isFirst = !this.#readAt.has(member);
    this.#readAt.set(member, this.#options.clock.now());
    const { known } = member.devices;
    member.devices.known = devices;
    if (isFirst || known !== member.devices.known) this.#options.onRead();
  }
}

/** Returns undefined if there are too many to keep. Rejects with KubeError. */
async function readDevices(client: ClusterClient, signal: AbortSignal): Promise<DevicesStatus | undefined> {
  const found = await ignoring(listAll(client, deviceClasses, { signal }), "NotFound");
  if (found === undefined) return { served: false, classes: [], drivers: [] };
  if (found.length > MOST_CLASSES) return undefined;
  const classes = found.map(statusOf).sort((a, b) => (a.name < b.name ? -1 : 1));
  const drivers: string[] = [];
  for (const driver of new Set(classes.flatMap((one) => one.driver ?? []))) {
    const { items } = await client.list(resourceSlices, { fieldSelector: `spec.driver=${driver}`, limit: 1, signal });
    if (items.length > 0) drivers.push(driver);
  }
  return { served: true, classes, drivers: drivers.sort() };
}

function statusOf(deviceClass: Stored<AnyObject>): DeviceClassStatus {
  const { metadata } = deviceClass;
  const resource = valueAt(deviceClass, ["spec", "extendedResourceName"]);
  const driver = named(driverOf(deviceClass));
  return { name: metadata.name.slice(0, LONGEST_NAME), ...defined({ driver, extendedResource: named(resource) }) };
}

/** A member may write anything. */
function named(value: unknown): string | undefined {
  return typeof value === "string" && value.length <= LONGEST_NAME ? value : undefined;
}
