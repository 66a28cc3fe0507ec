import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ResourceFlavor } from "../../api/kueue.ts";
import { resourceFlavors } from "../../api/resources.ts";
import type { Registry } from "../../clusters/registry.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { Reflector } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ControllerEvents } from "../events.ts";
import { capacities, type Flavor, type FlavorCapacity, selectsMembers } from "./capacity.ts";
import { memberRoom, type RoomFacts, unconnectedRoom } from "./member-rooms.ts";

export interface FlavorCapacitiesOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "clusters" | "members" | "unconnected">;
  readonly proxies: Pick<ReadStore<Pod>, "byIndex" | "synced">;
  readonly wholeJobs: RoomFacts["wholeJobs"];
  readonly events: Events<ControllerEvents>;
  readonly clock: Clock;
  readonly log: Logger;
}

// Many events of members come together, and each sum goes through all nodes and proxies.
const SUMS_EVERY_MS = 1_000;

/** What members have for each ResourceFlavor that selects them. */
export class FlavorCapacities {
  readonly #options: FlavorCapacitiesOptions;
  readonly #flavors: Reflector<ResourceFlavor>;
  readonly #listeners: (() => void)[] = [];
  #timer: Timer | undefined;
  #sums: { readonly at: number; readonly value: ReadonlyMap<string, FlavorCapacity> } | undefined;

  constructor(options: FlavorCapacitiesOptions) {
    this.#options = options;
    const { host: client, events, clock, log } = options;
    this.#flavors = new Reflector<ResourceFlavor>({
      client,
      resource: resourceFlavors,
      clock,
      log,
      onEvent: () => this.changed(),
    });
    for (const name of ["memberNodes", "connection", "cluster", "nodeSpec"] as const) {
      events.on(name, () => this.changed());
    }
  }

  /** Has the listener called when the sums may have changed. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  start(): void {
    this.#flavors.start();
  }

  stop(): Promise<void> {
    this.#timer?.cancel();
    return this.#flavors.stop();
  }

  /** Has the sums made anew, within a second. */
  changed(): void {
    this.#timer ??= this.#options.clock.after(SUMS_EVERY_MS, () => {
      this.#timer = undefined;
      this.#sums = undefined;
      for (const listener of this.#listeners) listener();
    });
  }

  /** Returns undefined before flavors, proxies and all members were read. At most a second old. */
  current(): ReadonlyMap<string, FlavorCapacity> | undefined {
    const { registry, proxies, clock } = this.#options;
    const members = registry.members();
    if (!this.#flavors.store.synced || !proxies.synced || members.some(({ syncing }) => syncing)) return undefined;
    const now = clock.now();
    if (this.#sums !== undefined && now - this.#sums.at < SUMS_EVERY_MS) return this.#sums.value;
    const known = registry.clusters().map(({ metadata: { name, labels = {} } }) => ({ name, labels }));
    const flavors = this.#flavors.store.list().map(flavorOf);
    const following = flavors.filter((flavor) => selectsMembers(flavor, known));
    const value = capacities(following, [
      ...members.map((member) => memberRoom(member, this.#options)),
      ...registry.unconnected().map((cluster) => unconnectedRoom(cluster, this.#options)),
    ]);
    this.#sums = { at: now, value };
    return value;
  }
}

function flavorOf({ metadata, spec }: Stored<ResourceFlavor>): Flavor {
  return { name: metadata.name, nodeLabels: spec?.nodeLabels ?? {}, tolerations: spec?.tolerations ?? [] };
}
