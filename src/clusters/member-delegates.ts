import { HOST_LABEL } from "../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { ByteBudget } from "../kube/limits.ts";
import { pods } from "../kube/resources.ts";
import { madeByHost, ownerOf } from "../pods/delegate.ts";
import { type DependencyKey, dependencyKeys } from "../pods/dependencies.ts";
import { isBound, isTerminal } from "../pods/phase.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector, type ReflectorEvent } from "../runtime/reflector.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Departed } from "./departed.ts";
import type { Load } from "./load.ts";
import { RecentEnds } from "./recent-ends.ts";

const USES_INDEX = "uses";
const NAMESPACE_INDEX = "namespace";

/** Whose pods are followed, where, and who is told. */
export interface MemberDelegatesOptions {
  readonly client: ClusterClient;
  readonly hostId: string;
  /** Counts what they request. */
  readonly load: Load;
  readonly budget: ByteBudget;
  readonly clock: Clock;
  readonly log: Logger;
  /** A delegate under this key came, changed or went. */
  readonly onChange: (key: ObjectKey) => void;
  /** A delegate has ended or gone: what it used is free. */
  readonly onEnded: (delegate: Stored<Pod>) => void;
  readonly onState: () => void;
}

/** A member's pods that carry this host's label, by watch, with what they request and the dependencies that they name. */
export class MemberDelegates {
  readonly #hostId: string;
  readonly #load: Load;
  readonly #reflector: Reflector<Pod>;
  readonly #onChange: MemberDelegatesOptions["onChange"];
  readonly #onEnded: MemberDelegatesOptions["onEnded"];
  readonly #departed = new Departed();
  readonly #ends: RecentEnds;
  #endedVersion = 0;

  constructor(options: MemberDelegatesOptions) {
    const { client, hostId, load, budget, clock, log, onChange, onEnded, onState } = options;
    this.#hostId = hostId;
    this.#load = load;
    this.#onChange = onChange;
    this.#onEnded = onEnded;
    this.#ends = new RecentEnds(clock);
    this.#reflector = new Reflector({
      client,
      resource: pods,
      labelSelector: `${HOST_LABEL}=${hostId}`,
      budget,
      clock,
      log,
      // What has ended mounts nothing any more.
      indexes: {
        [USES_INDEX]: (pod) => (isTerminal(pod) ? [] : dependencyKeys(pod)),
        [NAMESPACE_INDEX]: (pod) => (isTerminal(pod) ? [] : [pod.metadata.namespace ?? ""]),
      },
      onEvent: (event) => this.#onEvent(event),
      onState,
    });
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    return this.#reflector.stop();
  }

  /** Ends a wait between attempts: the member is known to answer again. */
  retry(): void {
    this.#reflector.retry();
  }

  /** They are followed at this moment. */
  get watched(): boolean {
    return this.#reflector.state === "watching";
  }

  /** They have been listed since the connection began. */
  get read(): boolean {
    return this.#reflector.store.synced;
  }

  /** Since when they cannot be read, and why; undefined when they can. */
  get failing(): Reflector<Pod>["failing"] {
    return this.#reflector.failing;
  }

  /** Grows when one that had a node ends or goes. */
  get endedVersion(): number {
    return this.#endedVersion;
  }

  get size(): number {
    return this.#reflector.store.size;
  }

  /** All pods there that carry this host's label. */
  list(): Stored<Pod>[] {
    return this.#reflector.store.list();
  }

  /** The pod under this key, when this host made it. */
  get(key: ObjectKey): Stored<Pod> | undefined {
    const pod = this.#reflector.store.get(key);
    return pod !== undefined && madeByHost(pod, this.#hostId) ? pod : undefined;
  }

  /** Those that have not ended and name the dependency. */
  using(key: DependencyKey): Stored<Pod>[] {
    return this.#reflector.store.byIndex(USES_INDEX, key);
  }

  /** How many that have not ended name the dependency. */
  usersOf(key: DependencyKey): number {
    return this.#reflector.store.countByIndex(USES_INDEX, key);
  }

  /** How many that have not ended are in the namespace. */
  liveIn(namespace: string): number {
    return this.#reflector.store.countByIndex(NAMESPACE_INDEX, namespace);
  }

  /** Whether one has ended or gone in the namespace a moment ago: a quota there may still count it. */
  endedLately(namespace: string): boolean {
    return this.#ends.has(namespace);
  }

  /** The last state of the one under this key that was seen to go. */
  departed(key: ObjectKey): Stored<Pod> | undefined {
    return this.#departed.get(key);
  }

  /** The last state has been used. */
  forgetDeparted(key: ObjectKey): void {
    this.#departed.forget(key);
  }

  #onEvent(event: ReflectorEvent<Pod>): void {
    const { object } = event;
    const key = objectKey(object.metadata);
    let freed: boolean;
    if (event.type === "deleted") {
      freed = this.#load.forget(object);
      this.#departed.keep(key, object);
    } else {
      freed = this.#load.count(object, ownerOf(object)?.uid);
    }
    this.#onChange(key);
    if (!freed) return;
    this.#ends.note(object.metadata.namespace ?? "");
    // One that had no node leaves none free.
    if (isBound(object)) this.#endedVersion += 1;
    this.#onEnded(object);
  }
}
