import type { Namespace, ObjectKey, Pod, Stored } from "../../../api/kubernetes.ts";
import type { PlacementDefaults } from "../../../api/placement-defaults.ts";
import type { HomeApi } from "../../../pods/home-api.ts";
import type { HostAdmission } from "../../../pods/host-admission.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { IndexFunction, ReadStore } from "../../../runtime/store.ts";
import { Divisions } from "../../preferences/divisions.ts";
import { Groups } from "./groups.ts";
import { Memories } from "./memories.ts";
import type { PlacementMembers } from "./placement-rules.ts";
import { NAMESPACE_INDEX, PlacementRules, UID_INDEX } from "./placement-rules.ts";
import { PlacementView } from "./placement-view.ts";
import { Shapes } from "./refused-shapes.ts";
import { type Asked, Reservations } from "./reservations.ts";
import { SpreadCounts } from "./spread-counts.ts";

/** The indexes that the store of proxies needs. */
export const PLACEMENT_INDEXES: Readonly<Record<string, IndexFunction<Pod>>> = {
  [NAMESPACE_INDEX]: ({ metadata }) => [metadata.namespace ?? ""],
  [UID_INDEX]: ({ metadata }) => [metadata.uid],
};

export interface PlacementStateOptions {
  readonly registry: PlacementMembers;
  readonly namespaces: () => ReadStore<Namespace>;
  readonly defaults: () => ReadStore<PlacementDefaults>;
  /** The host's classes, by which its admission completes pods. Absent: pods are as their authors write them. */
  readonly classes?: Pick<HostAdmission, "runtimeClass" | "priorityClass">;
  /** Indexed by `PLACEMENT_INDEXES`. */
  readonly proxies: () => ReadStore<Pod>;
  readonly homeApi: (member: string) => HomeApi;
  readonly clock: Pick<Clock, "now">;
  /** Called with the pods that wait for a group whose place has changed. */
  readonly onGroup?: (keys: readonly ObjectKey[]) => void;
}

/** The state behind pods' places. The controller, `plan` and simulations use the same. */
export class PlacementState {
  readonly divisions: Divisions = new Divisions();
  readonly groups: Groups;
  readonly memories: Memories;
  readonly shapes: Shapes = new Shapes();
  readonly spread: SpreadCounts;
  readonly reservations: Reservations;
  readonly rules: PlacementRules;
  readonly view: PlacementView;
  /** Pods in overflow mode that are about to become proxies, by uid. */
  readonly #overflowing = new Map<string, Stored<Pod>>();
  readonly #proxies: () => ReadStore<Pod>;

  constructor(options: PlacementStateOptions) {
    const { registry, namespaces, defaults, classes, proxies, homeApi, clock, onGroup = () => undefined } = options;
    const { divisions, shapes } = this;
    const groups = new Groups(onGroup);
    const overflowing = this.#overflowing;
    const memories = new Memories(clock, (uid, member) => {
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

  /** Notes that a member shows the proxy's delegate. */
  held(uid: string, member: string): void {
    this.divisions.proxies.held(uid, member);
    this.groups.held(uid, member);
    this.spread.held(uid, member);
  }

  /** Reserves room for a pod in overflow mode that is about to be bound. */
  overflow(pod: Stored<Pod>, member: string, asked: Asked): void {
    const { uid } = pod.metadata;
    this.#overflowing.set(uid, pod);
    this.reservations.attempt(uid, member, asked, pod);
  }

  /** Undoes `overflow`: the pod was not bound. */
  giveUp(uid: string, member: string): void {
    const pod = this.#overflowing.get(uid);
    this.#overflowing.delete(uid);
    this.reservations.unmade(uid, member);
    this.memories.noteGivenUp(uid);
    if (pod !== undefined && !this.#isProxy(uid)) this.spread.remove(pod.metadata);
  }

  /** Notes a proxy as the host shows it. */
  update(proxy: Stored<Pod>): void {
    this.#overflowing.delete(proxy.metadata.uid);
    this.divisions.update(proxy);
    this.rules.update(proxy);
    this.spread.update(proxy);
  }

  /** Forgets a proxy. Reports whether other pods may have its room, or waited for its trial. */
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
