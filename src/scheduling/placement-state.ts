import type { Namespace, ObjectKey, Pod, Stored } from "../api/kubernetes.ts";
import type { PlacementDefaults } from "../api/placement-defaults.ts";
import type { Candidate } from "../placement/candidate.ts";
import type { HostIdentity } from "../pods/delegate.ts";
import type { HomeApi } from "../pods/home-api.ts";
import type { HostAdmission } from "../pods/host-admission.ts";
import type { RefusedWrite } from "../pods/proxy-conditions.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ReadStore } from "../runtime/store.ts";
import type { WriteGuard } from "../runtime/write-guard.ts";
import { Divisions } from "./divisions.ts";
import { Eligibilities } from "./eligibility.ts";
import type { SchedulingEmitter } from "./events.ts";
import { type GroupName, Groups } from "./groups.ts";
import { KnownPods } from "./known-pods.ts";
import { Memories } from "./memories.ts";
import type { PlacementView } from "./placement-view.ts";
import type { PlacementMembers } from "./pod-rules.ts";
import { PodRules } from "./pod-rules.ts";
import { RequestMutations } from "./request-mutations.ts";
import { Reservations, type RoomRequest } from "./reservations.ts";
import { Retries } from "./retries/retries.ts";
import { SpreadCounts } from "./spread-counts.ts";
import type { PodWishes } from "./workload.ts";

export interface PlacementStateOptions {
  readonly registry: PlacementMembers;
  readonly namespaces: ReadStore<Namespace>;
  readonly defaults: ReadStore<PlacementDefaults>;
  /** The host's classes, by which its admission completes pods. Undefined: pods are as their authors write them. */
  readonly classes: Pick<HostAdmission, "runtimeClass" | "priorityClass"> | undefined;
  /** Absent: pods carry their wishes. */
  readonly wishes?: PodWishes;
  /** Returns the group of pods that an object confines to one member. Absent: none does. */
  readonly confinement?: ((pod: Pod) => GroupName | undefined) | undefined;
  readonly proxies: ReadStore<Pod>;
  readonly homeApi: (member: string) => HomeApi;
  readonly clock: Pick<Clock, "now">;
  readonly writes?: WriteGuard<string, RefusedWrite>;
  readonly onGroup?: (keys: readonly ObjectKey[]) => void;
}

/** The state behind pods' places. The controller, `plan` and simulations use the same. */
export class PlacementState {
  readonly divisions: Divisions = new Divisions();
  readonly groups: Groups;
  readonly memories: Memories;
  readonly retries: Retries;
  readonly mutations: RequestMutations = new RequestMutations();
  readonly spread: SpreadCounts;
  readonly reservations: Reservations;
  readonly podRules: PodRules;
  readonly eligibilities: Eligibilities;
  readonly #pods: KnownPods;
  readonly #proxies: ReadStore<Pod>;

  constructor(options: PlacementStateOptions) {
    const { proxies, clock, writes, onGroup = () => undefined } = options;
    const { divisions, mutations } = this;
    const groups = new Groups(onGroup);
    const pods = new KnownPods(proxies);
    this.#pods = pods;
    this.#proxies = proxies;
    const onPlace = (uid: string, member: string | undefined): void => {
      divisions.proxies.place(uid, member);
      groups.place(uid, member);
      spread.place(uid, member);
    };
    const memories = new Memories(clock, onPlace, writes);
    const spread = new SpreadCounts({
      podsIn: (namespace) => pods.in(namespace),
      podOf: (uid) => pods.get(uid),
    });
    const retries = new Retries({ ...options, memories });
    const shared = { ...options, divisions, groups, memories, mutations, pods, retries, spread };
    const podRules = new PodRules({ ...shared, owned: divisions.proxies });
    this.groups = groups;
    this.memories = memories;
    this.retries = retries;
    this.spread = spread;
    this.podRules = podRules;
    this.reservations = new Reservations(shared);
    this.eligibilities = new Eligibilities({ ...shared, podRules });
  }

  noteDelegate(uid: string, member: string): void {
    this.divisions.proxies.noteDelegate(uid, member);
    this.groups.noteDelegate(uid, member);
    this.spread.noteDelegate(uid, member);
  }

  delegateIn(key: ObjectKey, proxyUid: string, candidate: Candidate, host: HostIdentity): Pod | undefined {
    const proxy = this.#proxies.get(key);
    return proxy?.metadata.uid === proxyUid ? this.eligibilities.delegateIn(proxy, candidate, host) : undefined;
  }

  /** Reserves room for a pod that is about to be bound and to become a proxy. */
  reserve(pod: Stored<Pod>, member: string, asked: RoomRequest): void {
    this.#pods.join(pod);
    this.reservations.attempt(pod.metadata.uid, member, asked, pod);
    this.groups.hold(pod.metadata.uid, member);
  }

  giveUp(uid: string, member: string): void {
    const pod = this.#pods.leave(uid);
    this.reservations.unmade(uid, member);
    this.groups.hold(uid, undefined);
    this.memories.noteGivenUp(uid);
    if (pod !== undefined && !this.#pods.isProxy(uid)) this.spread.remove(pod.metadata);
  }

  update(proxy: Stored<Pod>): void {
    this.#pods.leave(proxy.metadata.uid);
    this.divisions.update(proxy);
    this.podRules.update(proxy);
    this.spread.update(proxy);
  }

  /** Forgets a proxy. Reports whether other pods may have its room, or waited for its trial. */
  remove(proxy: Stored<Pod>): boolean {
    const { uid, namespace = "" } = proxy.metadata;
    this.#pods.leave(uid);
    const awaited = this.reservations.end(uid);
    this.divisions.remove(proxy);
    this.groups.remove(uid);
    this.spread.remove(proxy.metadata);
    if (!this.#pods.hasProxiesIn(namespace)) this.spread.forget(namespace);
    return awaited;
  }
}

/** The placement of pods that are no proxies yet, for a controller that makes them proxies. */
export interface PlacementAccess {
  readonly placementState: PlacementState;
  readonly identity: HostIdentity;
  readonly proxies: ReadStore<Pod>;
  readonly observe: (key: ObjectKey, pod: Stored<Pod>) => PlacementView;
  readonly events: SchedulingEmitter;
}
