import type { ApiMode } from "../../api/annotations.ts";
import { clusterOfNode, DELEGATION_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE, virtualNodeName } from "../../api/keys.ts";
import { type Namespace, type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { PlacementDefaults } from "../../api/placement-defaults.ts";
import { placementDefaults } from "../../api/resources.ts";
import type { Member } from "../../clusters/member.ts";
import { namespaces, pods } from "../../kube/resources.ts";
import { USES_INDEX, usesOf } from "../../pods/dependencies.ts";
import { isBound, isGated, isLive } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { Controller } from "../../runtime/controller.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Sharing } from "../preferences/controller.ts";
import type { OwnedProxies } from "../preferences/owned-proxies.ts";
import { Executor } from "./actions/execute.ts";
import type { Refusals } from "./actions/refused-writes.ts";
import { HeldDelegates } from "./actions/restored-host.ts";
import { PodTraces } from "./actions/traces.ts";
import { decide } from "./decide.ts";
import { HostClasses } from "./host-classes.ts";
import type { Action } from "./model/decision.ts";
import { awaitsDelegate, endsUnstarted, isFor } from "./model/delegates.ts";
import { type DecisionRecord, redacted } from "./model/redact.ts";
import type { View } from "./model/view.ts";
import { identify, Observer } from "./observe.ts";
import type { DelegationOptions } from "./options.ts";
import { OverflowPlacement } from "./placement/overflow-placement.ts";
import { PlaceTracker } from "./placement/place-tracker.ts";
import { NAMESPACE_INDEX } from "./placement/placement-rules.ts";
import { PLACEMENT_INDEXES, PlacementState } from "./placement/placement-state.ts";
import { QuotaQueues } from "./placement/quota-queues.ts";
import { WaitingProxies } from "./placement/waiting-proxies.ts";
import { waitingIn } from "./waiting-in-member.ts";

const NODE_INDEX = "node";

/** Places proxies, keeps delegates and proxies alike, and ends both together. One key is one pod name. */
export class DelegationController {
  /** For pods that are no proxies yet. */
  readonly overflow: OverflowPlacement;
  readonly #options: DelegationOptions;
  readonly #proxies: Reflector<Pod>;
  readonly #namespaces: Reflector<Namespace>;
  readonly #classes: HostClasses;
  readonly #placementState: PlacementState;
  readonly #held: HeldDelegates;
  readonly #executor: Executor;
  readonly #defaults: Reflector<PlacementDefaults>;
  readonly #loop: Controller<ObjectKey, View, Action>;
  readonly #waiting: WaitingProxies;
  readonly #quotas: QuotaQueues;
  /** The proxies that were there when this controller began to lead have been read. */
  #leading = false;

  constructor(options: DelegationOptions) {
    this.#options = options;
    const { host: client, clock, log } = options;
    this.#proxies = new Reflector({
      client,
      resource: pods,
      labelSelector: `${PROXY_LABEL}=${PROXY_LABEL_VALUE}`,
      clock,
      log,
      indexes: {
        [NODE_INDEX]: ({ spec }) => (spec?.nodeName === undefined ? [] : [spec.nodeName]),
        [USES_INDEX]: usesOf,
        ...PLACEMENT_INDEXES,
      },
      onEvent: (event) => {
        options.dependencies.onProxy(event);
        this.#onProxy(event);
      },
    });
    this.#namespaces = new Reflector({
      client,
      resource: namespaces,
      labelSelector: DELEGATION_LABEL,
      clock,
      log,
      onEvent: ({ object }) => this.#onNamespace(object),
    });
    this.#defaults = new Reflector({
      client,
      resource: placementDefaults,
      clock,
      log,
      onEvent: () => this.#onDefaults(),
    });
    this.#classes = new HostClasses(options);
    this.#placementState = new PlacementState({
      registry: options.registry,
      classes: this.#classes.admission,
      namespaces: () => this.#namespaces.store,
      defaults: () => this.#defaults.store,
      proxies: () => this.#proxies.store,
      homeApi: options.homeApi,
      clock,
      onGroup: (keys) => {
        for (const key of keys) this.#loop.enqueue(key);
        options.onRoom();
      },
    });
    const { memories, reservations } = this.#placementState;
    const proxyOf = (key: ObjectKey): Stored<Pod> | undefined => this.#proxies.store.get(key);
    this.#waiting = new WaitingProxies({
      clock,
      memories,
      proxyOf,
      look: (keys, done) => this.#loop.enqueueBehind(keys, done),
    });
    this.#quotas = new QuotaQueues({
      clock,
      proxyOf,
      memoryOf: (proxyUid) => memories.of(proxyUid),
      reopen: (key, proxyUid, member) => {
        memories.noteOpen(proxyUid, member, clock.now());
        this.#loop.enqueue(key);
      },
    });
    const observer = new Observer({
      ...options,
      placementState: this.#placementState,
      proxies: this.#proxies.store,
      waitingSince: (key) => this.#waiting.since(key),
    });
    const tracker = new PlaceTracker({
      registry: options.registry,
      placementState: this.#placementState,
      proxies: this.#proxies.store,
      clock,
    });
    this.overflow = new OverflowPlacement({
      placementState: this.#placementState,
      identity: options.identity,
      namespaces: this.#namespaces.store,
      proxies: this.#proxies.store,
      observe: (key, pod) => observer.seen(key, pod),
      onRoom: () => this.onRoom(),
    });
    this.#held = new HeldDelegates(options);
    this.#executor = new Executor({
      ...options,
      held: this.#held,
      memories,
      reservations,
      quotas: this.#quotas,
      delegateIn: (key, proxyUid, member) => {
        const proxy = proxyOf(key);
        if (proxy?.metadata.uid !== proxyUid) return undefined;
        return this.#placementState.view.delegateIn(proxy, member.candidate(), options.identity);
      },
      mayEnter: (proxyUid, member) => this.#placementState.groups.mayEnter(proxyUid, member),
      proxyOf,
      onRoom: () => this.#onFree(),
      onRefused: (key) => this.#loop.enqueue(key),
      waitingSince: (key) => this.#waiting.since(key),
      deletionCost: (proxyUid) => this.#placementState.divisions.costAnnotations(proxyUid),
    });
    const way =
      options.traces &&
      new PodTraces({
        traces: options.traces,
        host: options.identity.name,
        proxyOf,
        memoryOf: (proxyUid) => memories.of(proxyUid),
        waitingSince: (key) => this.#waiting.since(key),
        now: () => clock.now(),
      });
    this.#loop = new Controller<ObjectKey, View, Action>(
      {
        name: "delegation",
        observe: (key) => {
          tracker.update(key);
          return observer.observe(key);
        },
        identify,
        decide: (view, now) => {
          const decision = decide(view, now);
          // With this line a bug report carries all that a decision was made from.
          if (log.isLevelEnabled("debug")) {
            log.debug({ ...identify(view), ...redacted<DecisionRecord>({ now, view, decision }) }, "decided");
          }
          return decision;
        },
        // What nobody wants any more goes, whatever keeps its successor from being made or told of.
        standsAlone: (action) => action.type === "sweep" || (action.type === "delete" && action.surplus === true),
        execute: (action, context) => {
          const run = (): ReturnType<Executor["execute"]> => this.#executor.execute(action, context);
          return way === undefined ? run() : way.follow(action, context, run);
        },
      },
      options,
    );
  }

  /** Reads namespaces and proxies, then decides. Members may come before or after. */
  async start(signal: AbortSignal): Promise<void> {
    this.#namespaces.start();
    this.#defaults.start();
    await this.#namespaces.whenSynced(signal);
    await this.#defaults.whenSynced(signal);
    await this.#classes.start(signal);
    this.#proxies.start();
    await this.#proxies.whenSynced(signal);
    this.#leading = true;
    for (const proxy of this.#proxies.store.list()) {
      // Again, now that all owners among them are known.
      this.#placementState.rules.update(proxy);
      this.#loop.enqueue(objectKey(proxy.metadata));
    }
    for (const member of this.#options.registry.members()) {
      for (const { metadata } of member.delegates.list()) this.onDelegate(objectKey(metadata), member);
    }
  }

  async stop(): Promise<void> {
    this.#waiting.stop();
    this.#quotas.stop();
    await Promise.all([this.#proxies.stop(), this.#namespaces.stop(), this.#defaults.stop(), this.#classes.stop()]);
    await this.#loop.stop();
  }

  /** Number of proxies bound to a node; undefined: they have still to be read. */
  boundTo(nodeName: string): number | undefined {
    const { store } = this.#proxies;
    return store.synced ? store.countByIndex(NODE_INDEX, nodeName) : undefined;
  }

  /** Number of proxies without a node whose delegates are in a member, or may be. */
  waitingIn(cluster: string): number {
    const { memories, view } = this.#placementState;
    const known = waitingIn(cluster, {
      registry: this.#options.registry,
      waiting: this.#waiting.list(),
      memoryOf: (proxyUid) => memories.of(proxyUid),
      excludesOf: (proxy) => view.of(proxy).excludes,
    });
    return known + this.#executor.creatingIn(cluster);
  }

  /** Number of delegates that are kept in a member though the host does not know them. */
  heldIn(cluster: string): number {
    return this.#held.countIn(cluster);
  }

  /** The proxies bound to a node. */
  proxiesOn(nodeName: string): Stored<Pod>[] {
    return this.#proxies.store.byIndex(NODE_INDEX, nodeName);
  }

  /** Live proxies by owner. */
  get owned(): OwnedProxies {
    return this.#placementState.divisions.proxies;
  }

  /** The host's proxies. */
  get proxies(): ReadStore<Pod> {
    return this.#proxies.store;
  }

  /** What the author wrote, on the pod or its namespace; undefined also when it cannot be read. */
  apiMode(proxy: Stored<Pod>): ApiMode | undefined {
    return this.#placementState.view.apiMode(proxy);
  }

  /** How the pod's workload is to be divided, and over which members; undefined when its author does not say. */
  sharing(proxy: Stored<Pod>): Sharing | undefined {
    return this.#placementState.view.sharing(proxy);
  }

  /** Tells authors of writes for their pods that are refused. */
  get refusals(): Refusals {
    return this.#executor.refusals;
  }

  /** The proxies that nobody has taken yet, for metrics. */
  waiting(): ReturnType<WaitingProxies["summary"]> {
    return this.#waiting.summary();
  }

  /** Something under the key changed, in this member if one is named. */
  onDelegate(key: ObjectKey, member?: Member): void {
    const delegate = member?.delegates.get(key);
    const proxy = this.#proxies.store.get(key);
    // Told at once: what waits is decided on before each delegate's own proxy is looked at. Anybody may copy one under another name.
    if (member !== undefined && delegate !== undefined && proxy !== undefined && isFor(delegate, proxy)) {
      if (!endsUnstarted(delegate)) this.#placementState.held(proxy.metadata.uid, member.name);
    }
    this.#loop.enqueue(key);
  }

  /** A member's nodes changed: proxies that wait may fit now. */
  onCapacity(): void {
    this.#waiting.onCapacity();
  }

  /** A member has got room: a proxy that waits may have it. */
  onRoom(): void {
    this.#waiting.onRoom();
  }

  /** A delegate has ended: a quota that counted it may have room, too. */
  onEnded(member: string, { metadata: { namespace = "" } }: Stored<Pod>): void {
    this.#quotas.onEnded({ member, namespace });
  }

  /** What was read of a member counts no more: its new connection must show first what it has of the proxies that wait. */
  onReconnected(member: string): void {
    this.#waiting.onReconnected(member);
  }

  /** A member came back or was lost: everything it has, and everything that waits, is looked at again. */
  onConnection(member: Member): void {
    this.onCapacity();
    if (!member.reachable) return;
    for (const { metadata } of member.delegates.list()) this.#loop.enqueue(objectKey(metadata));
    this.onNodeReady(member.name);
  }

  /** The virtual node of a Cluster is Ready, or not any more, or out of service: its proxies say so, or go, or are bound to it. */
  onNodeReady(cluster: string): void {
    this.onCapacity();
    for (const { metadata } of this.#proxies.store.byIndex(NODE_INDEX, virtualNodeName(cluster))) {
      this.#loop.enqueue(objectKey(metadata));
    }
  }

  #onProxy(event: ReflectorEvent<Pod>): void {
    const { type, object } = event;
    const key = objectKey(object.metadata);
    const { uid } = object.metadata;
    const node = object.spec?.nodeName;
    const cluster = clusterOfNode(node);
    const moved = event.type === "updated" ? event.previous.spec?.nodeName !== node : true;
    if (cluster !== undefined && moved) this.#options.onBound(cluster, key);
    // Spreads and limits count the others alone.
    const wasLive = isLive(event.type === "updated" ? event.previous : object);
    if (wasLive && (type === "deleted" || !isLive(object))) this.#onPlaces();
    if (type === "deleted") {
      this.#quotas.leave(uid);
      this.#waiting.remove(key);
      if (this.#placementState.remove(object)) this.#onFree();
    } else if (isBound(object)) {
      if (isSettled(object) || !isLive(object)) this.#quotas.leave(uid);
      this.#waiting.remove(key);
      if (moved && this.#leading) this.#onPlaces();
      if (type === "updated" && !isSettled(event.previous)) this.#settle(object);
    } else {
      this.#waiting.add(key, object);
      // Gates are only ever taken off: a pod that has one was given to nobody.
      if (!this.#leading && !isGated(object)) this.#placementState.memories.noteInherited(uid);
    }
    if (type !== "deleted") this.#placementState.update(object);
    this.#options.onProxy(object);
    this.#loop.enqueue(key);
  }

  /** Its delegate is on record: nothing of its search matters any more, also where the answer to that write was lost. */
  #settle(proxy: Stored<Pod>): void {
    const member = memberOf(proxy);
    if (member === undefined || !isSettled(proxy)) return;
    if (this.#placementState.reservations.settle(proxy.metadata.uid, member, proxy)) this.#onFree();
  }

  /** Room that was kept in a member is free, or a member takes pods again of a shape that it had refused. */
  #onFree(): void {
    this.onRoom();
    this.#options.onRoom();
  }

  /** A proxy has its place, or has it no more: an even spread or a limit may let another have one. */
  #onPlaces(): void {
    this.#waiting.onPlaces();
    this.#options.onRoom();
  }

  #onNamespace({ metadata }: Stored<Namespace>): void {
    this.#options.onDefaults();
    for (const proxy of this.#proxies.store.byIndex(NAMESPACE_INDEX, metadata.name)) {
      this.#placementState.rules.update(proxy);
      if (!isBound(proxy)) this.#loop.enqueue(objectKey(proxy.metadata));
    }
  }

  #onDefaults(): void {
    this.#options.onDefaults();
    for (const proxy of this.#proxies.store.list()) this.#placementState.rules.update(proxy);
    this.onCapacity();
  }
}

/** True when it is bound, and its delegate is on record. */
function isSettled(proxy: Pod): boolean {
  return isBound(proxy) && !awaitsDelegate(proxy);
}
