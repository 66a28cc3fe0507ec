import type { Namespace, ObjectKey, Pod, Stored } from "../../../api/kubernetes.ts";
import type { PlacementDefaults } from "../../../api/placement-defaults.ts";
import type { HomeApi } from "../../../pods/home-api.ts";
import type { HostAdmission } from "../../../pods/host-admission.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { IndexFunction, ReadStore } from "../../../runtime/store.ts";
import { Divisions } from "../../preferences/divisions.ts";
import { Memories } from "../model/memory.ts";
import { Groups } from "./groups.ts";
import type { PlacementMembers } from "./placement-members.ts";
import { NAMESPACE_INDEX, PlacementRules, UID_INDEX } from "./placement-rules.ts";
import { PlacementView } from "./placement-view.ts";
import { Shapes } from "./refused-shapes.ts";
import { type Asked, Reservations } from "./reservations.ts";
import { SpreadCounts } from "./spread-counts.ts";

/** What the store of proxies must be indexed by. */
export const PLACEMENT_INDEXES: Readonly<Record<string, IndexFunction<Pod>>> = {
  [NAMESPACE_INDEX]: ({ metadata }) => [metadata.namespace ?? ""],
  [UID_INDEX]: ({ metadata }) => [metadata.uid],
};

/** What placement works on. */
export interface PlacementStateOptions {
  readonly registry: PlacementMembers;
  readonly namespaces: () => ReadStore<Namespace>;
  readonly defaults: () => ReadStore<PlacementDefaults>;
  /** The host's classes, by which its admission completes pods; absent: the pods are as their authors write them. */
  readonly classes?: Pick<HostAdmission, "runtimeClass" | "priorityClass">;
  /** Indexed by `PLACEMENT_INDEXES`. */
  readonly proxies: () => ReadStore<Pod>;
  readonly homeApi: (member: string) => HomeApi;
  readonly clock: Pick<Clock, "now">;
  /** Pods wait for a group whose place has changed. */
  readonly onGroup?: (keys: readonly ObjectKey[]) => void;
}

/** All that decides over the places of pods, wired together: the same for the controller, a plan and a simulation. */
export class PlacementState {
  readonly divisions: Divisions = new Divisions();
  readonly groups: Groups;
  readonly memories: Memories;
  readonly shapes: Shapes = new Shapes();
  readonly spread: SpreadCounts;
  readonly reservations: Reservations;
  readonly rules: PlacementRules;
  readonly view: PlacementView;
  /** Pods in overflow mode that are about to be bound, by uid: no proxies yet. */
  readonly #overflowing = new Map<string, Stored<Pod>>();
  readonly #proxies: () => ReadStore<Pod>;

  constructor(options: PlacementStateOptions) {
    const { registry, namespaces, defaults, classes, proxies, homeApi, clock, onGroup = () => undefined } = options;
    const { divisions, shapes } = this;
    const groups = new Groups(onGroup);
    const overflowing = this.#overflowing;
    const memories = new Memories((uid, member) => {
      divisions.proxies.place(uid, member);
      groups.place(uid, member);
      spread.place(uid, member);
    });
    const spread = new SpreadCounts({
      podsIn: (namespace) => [
        ...proxies().byIndex(NAMESPACE_INDEX, namespace),
        ...[...overflowing.values()].filter(({ metadata }) => metadata.namespace === namespace),
      ],
      podOf: (uid) => proxies().byIndex(UID_INDEX, uid)[0] ?? overflowing.get(uid),
    });
    this.spread = spread;
    this.#proxies = proxies;
    const owned = divisions.proxies;
    const rules = new PlacementRules({
      registry,
      namespaces,
      defaults,
      classes,
      proxies,
      overflowing,
      owned,
      memories,
      groups,
      spread,
    });
    this.groups = groups;
    this.memories = memories;
    this.reservations = new Reservations({ registry, memories, shapes, clock });
    this.rules = rules;
    this.view = new PlacementView({ registry, rules, divisions, groups, shapes, homeApi, clock });
  }

  /** A member shows the delegate of a proxy. */
  held(uid: string, member: string): void {
    this.divisions.proxies.held(uid, member);
    this.groups.held(uid, member);
    this.spread.held(uid, member);
  }

  /** A pod in overflow mode is about to be bound to the member: it counts there from now on. */
  overflow(pod: Stored<Pod>, member: string, asked: Asked): void {
    const { uid } = pod.metadata;
    this.#overflowing.set(uid, pod);
    this.reservations.attempt(uid, member, asked, pod);
  }

  /** It was not bound. */
  giveUp(uid: string, member: string): void {
    const pod = this.#overflowing.get(uid);
    this.#overflowing.delete(uid);
    this.reservations.unmade(uid, member);
    this.memories.noteGivenUp(uid);
    if (pod !== undefined && !this.#isProxy(uid)) this.spread.remove(pod.metadata);
  }

  /** A proxy is in the store as the host shows it. */
  update(proxy: Stored<Pod>): void {
    this.#overflowing.delete(proxy.metadata.uid);
    this.divisions.update(proxy);
    this.rules.update(proxy);
    this.spread.update(proxy);
  }

  /** A proxy is gone, or about to be replaced; true when others may have its room, or waited for what would become of it. */
  remove(proxy: Stored<Pod>): boolean {
    const { uid, namespace = "" } = proxy.metadata;
    this.#overflowing.delete(uid);
    const awaited = this.reservations.end(uid);
    this.divisions.remove(proxy);
    this.groups.remove(uid);
    this.spread.remove(proxy.metadata);
    if (this.#proxies().countByIndex(NAMESPACE_INDEX, namespace) === 0) this.spread.forget(namespace);
    return awaited;
  }

  #isProxy(uid: string): boolean {
    return this.#proxies().countByIndex(UID_INDEX, uid) > 0;
  }
}
