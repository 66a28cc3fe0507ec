import type { KubeObject, Pod, Stored } from "../../api/kubernetes.ts";
import type { ResourceFlavor } from "../../api/kueue.ts";
import type { Registry } from "../../clusters/registry.ts";
import { flavorOf, selectsMembers } from "../../placement/flavors.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/event-bus.ts";
import type { Reflector } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { ControllerEvents } from "../events.ts";
import { type FlavorCapacity, capacities as sumCapacities } from "./capacity.ts";
import { KueueController, type KueueKind, type KueueOptions } from "./kueue-controller.ts";
import { memberRoom, type RoomFacts, unconnectedRoom } from "./member-rooms.ts";

export interface FlavorCapacitiesOptions {
  readonly flavors: Pick<Reflector<ResourceFlavor>, "start" | "store">;
  readonly registry: Pick<Registry, "clusters" | "members" | "unconnected">;
  readonly proxies: Pick<ReadStore<Pod>, "byIndex" | "synced">;
  readonly wholeInMember: RoomFacts["wholeInMember"];
  readonly events: Events<ControllerEvents>;
  readonly clock: Clock;
}

// Many events of members come together, and each sum goes through all nodes and proxies.
const SUMS_EVERY_MS = 1_000;

/** What members have for each ResourceFlavor that selects them. */
export class FlavorCapacities {
  readonly #options: FlavorCapacitiesOptions;
  readonly #users: { readonly listener: () => void; readonly flavors: () => Iterable<string> }[] = [];
  #timer: Timer | undefined;
  #sums: { readonly at: number; readonly value: ReadonlyMap<string, FlavorCapacity> } | undefined;

  constructor(options: FlavorCapacitiesOptions) {
    this.#options = options;
    for (const name of ["flavors", "memberNodes", "connection", "cluster", "nodeSpec"] as const) {
      options.events.on(name, () => this.changed());
    }
  }

  /** Has the listener called when the sums may have changed. Nodes count for flavors that some user names. */
  onChange(listener: () => void, flavors: () => Iterable<string>): void {
    this.#users.push({ listener, flavors });
  }

  start(): void {
    this.#options.flavors.start();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Has the sums made anew, within a second. */
  changed(): void {
    this.#timer ??= this.#options.clock.after(SUMS_EVERY_MS, () => {
      this.#timer = undefined;
      this.#sums = undefined;
      for (const { listener } of this.#users) listener();
    });
  }

  /** Returns undefined before flavors, proxies and all members were read. At most a second old. */
  current(): ReadonlyMap<string, FlavorCapacity> | undefined {
    const { flavors, registry, proxies, clock } = this.#options;
    const members = registry.members();
    if (!flavors.store.synced || !proxies.synced || members.some(({ syncing }) => syncing)) return undefined;
    const now = clock.now();
    if (this.#sums !== undefined && now - this.#sums.at < SUMS_EVERY_MS) return this.#sums.value;
    const known = registry.clusters().map(({ metadata: { labels = {} } }) => ({ labels }));
    const named = new Set(this.#users.flatMap((user) => [...user.flavors()]));
    const following = flavors.store
      .list()
      .map(flavorOf)
      .filter((flavor) => named.has(flavor.name) && selectsMembers(flavor, known));
    const value = sumCapacities(following, [
      ...members.map((member) => memberRoom(member, this.#options)),
      ...registry.unconnected().map((cluster) => unconnectedRoom(cluster, this.#options)),
    ]);
    this.#sums = { at: now, value };
    return value;
  }
}

/** A kind of Kueue's objects that say what members have. */
export interface CapacityKind<T extends KubeObject> extends Omit<KueueKind<T>, "changeOf" | "onEvent" | "onState"> {
  flavorsOf(object: T): readonly string[];
  /** `capacities`: undefined until they are known. */
  changeOf(
    object: Stored<T>,
    capacities: ReadonlyMap<string, FlavorCapacity> | undefined,
    all: readonly Stored<T>[],
    wall: number,
  ): ReturnType<KueueKind<T>["changeOf"]>;
}

/** Makes the controller that keeps objects of one kind true to what members have. */
export function followCapacities<T extends KubeObject>(
  kind: CapacityKind<T>,
  options: KueueOptions & {
    readonly capacities: Pick<FlavorCapacities, "changed" | "current" | "onChange" | "start">;
  },
): KueueController<T> {
  const { capacities } = options;
  const following: KueueKind<T> = {
    ...kind,
    // Shares of others may have changed with it, and what flavors are used.
    onEvent: () => capacities.changed(),
    onState: (state) => {
      if (state === "watching") capacities.start();
    },
    changeOf: (object, all, wall) => kind.changeOf(object, capacities.current(), all, wall),
  };
  const controller = new KueueController(following, options);
  capacities.onChange(
    () => controller.enqueueAll(),
    () => controller.store.list().flatMap((object) => kind.flavorsOf(object)),
  );
  return controller;
}
