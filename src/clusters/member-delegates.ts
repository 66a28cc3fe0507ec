import { type ObjectKey, objectKey, type Pod, type Stored } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { ByteBudget } from "../kube/limits.ts";
import { pods } from "../kube/resources.ts";
import { delegateSelector, madeByHost, ownerOf } from "../pods/delegate.ts";
import { isBound, isTerminal } from "../pods/pod-state.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector, type ReflectorEvent } from "../runtime/reflector.ts";
import type { IndexFunction, ReadStore } from "../runtime/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { DelegateRequests } from "./delegate-requests.ts";
import { RecentEnds, Tombstones } from "./ended-delegates.ts";

const NAMESPACE_INDEX = "namespace";

export interface MemberDelegatesOptions {
  readonly client: ClusterClient;
  readonly hostId: string;
  readonly requests: DelegateRequests;
  readonly budget: ByteBudget;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: (key: ObjectKey) => void;
  readonly onEnded: (delegate: Stored<Pod>) => void;
  readonly onState: () => void;
}

export interface PodIndex {
  readonly name: string;
  readonly valuesOf: IndexFunction<Pod>;
}

/** The watched pods of a member with this host's label, indexed by namespace. */
export class MemberDelegates {
  readonly #options: MemberDelegatesOptions;
  readonly reflector: Reflector<Pod>;
  readonly #tombstones = new Tombstones();
  readonly #ends: RecentEnds;
  #endedVersion = 0;

  constructor(options: MemberDelegatesOptions) {
    const { client, hostId, budget, clock, log, onState } = options;
    this.#options = options;
    this.#ends = new RecentEnds(clock);
    this.reflector = new Reflector({
      client,
      resource: pods,
      labelSelector: delegateSelector(hostId),
      budget,
      clock,
      log,
      // A finished pod frees its quota.
      indexes: { [NAMESPACE_INDEX]: (pod) => (isTerminal(pod) ? [] : [pod.metadata.namespace ?? ""]) },
      onEvent: (event) => this.#onEvent(event),
      onState,
    });
  }

  get watched(): boolean {
    return this.reflector.state === "watching";
  }

  /** The pods were listed since the connection began. */
  get read(): boolean {
    return this.reflector.store.synced;
  }

  /** Grows when a scheduled delegate ends or is deleted. */
  get endedVersion(): number {
    return this.#endedVersion;
  }

  get size(): number {
    return this.reflector.store.size;
  }

  list(): Stored<Pod>[] {
    return this.reflector.store.list();
  }

  /** Returns undefined for a pod that another host created, or a client of the member derived from a delegate. */
  get(key: ObjectKey): Stored<Pod> | undefined {
    return this.#ifDelegate(this.reflector.store.get(key));
  }

  /** Returns unfinished delegates by an index, which is added when it is asked for first. */
  unfinished(index: PodIndex, value: string): Stored<Pod>[] {
    return this.#indexed(index).byIndex(index.name, value);
  }

  countUnfinished(index: PodIndex, value: string): number {
    return this.#indexed(index).countByIndex(index.name, value);
  }

  removeIndex(index: string): void {
    this.reflector.store.removeIndex(index);
  }

  liveIn(namespace: string): number {
    return this.reflector.store.countByIndex(NAMESPACE_INDEX, namespace);
  }

  /** A ResourceQuota may still count it. */
  endedLately(namespace: string): boolean {
    return this.#ends.has(namespace);
  }

  departed(key: ObjectKey): Stored<Pod> | undefined {
    return this.#ifDelegate(this.#tombstones.get(key));
  }

  forgetDeparted(key: ObjectKey): void {
    this.#tombstones.forget(key);
  }

  #indexed({ name, valuesOf }: PodIndex): ReadStore<Pod> {
    const { store } = this.reflector;
    store.addIndex(name, (pod) => (isTerminal(pod) ? [] : valuesOf(pod)));
    return store;
  }

  #ifDelegate(pod: Stored<Pod> | undefined): Stored<Pod> | undefined {
    return pod !== undefined && madeByHost(pod, this.#options.hostId) ? pod : undefined;
  }

  #onEvent(event: ReflectorEvent<Pod>): void {
    const { hostId, requests, onChange, onEnded } = this.#options;
    const { object } = event;
    const key = objectKey(object.metadata);
    let freed: boolean;
    if (event.type === "deleted") {
      freed = requests.forget(object);
      this.#tombstones.keep(key, object);
    } else {
      freed = requests.count(object, madeByHost(object, hostId) ? ownerOf(object)?.uid : undefined);
    }
    onChange(key);
    if (!freed) return;
    this.#ends.note(object.metadata.namespace ?? "");
    // An unscheduled delegate freed no node.
    if (isBound(object)) this.#endedVersion += 1;
    onEnded(object);
  }
}
