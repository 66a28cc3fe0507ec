import type { ApiMode } from "../../api/annotations.ts";
import {
  clusterOfNode,
  DELEGATE_UID_ANNOTATION,
  DELEGATION_LABEL,
  PROXY_LABEL,
  PROXY_LABEL_VALUE,
  virtualNodeName,
} from "../../api/keys.ts";
import { type Namespace, type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { PlacementDefaults } from "../../api/placement-defaults.ts";
import { placementDefaults } from "../../api/resources.ts";
import type { Member } from "../../clusters/member.ts";
import { namespaces, pods } from "../../kube/resources.ts";
import { USES_INDEX, usesOf } from "../../pods/dependencies.ts";
import { asksHostFirst } from "../../pods/overflow.ts";
import { isBound, isGated, isLive } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { Controller } from "../../runtime/controller.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Sharing } from "../preferences/controller.ts";
import type { OwnedProxies } from "../preferences/owned-proxies.ts";
import { HeldDelegates } from "../restored-host.ts";
import { Executor } from "./actions/execute.ts";
import type { Refusals } from "./actions/refused-writes.ts";
import { PodTraces } from "./actions/traces.ts";
import { decide } from "./decide.ts";
import { HostClasses } from "./host-classes.ts";
import type { Action } from "./model/decision.ts";
import { awaitsDelegate, endsUnstarted, isFor } from "./model/delegates.ts";
import { type DecisionRecord, redacted } from "./model/redact.ts";
import type { View } from "./model/view.ts";
import { identify, Observer } from "./observe.ts";
import type { DelegationOptions } from "./options.ts";
import { NAMESPACE_INDEX, PLACEMENT_INDEXES } from "./placement/known-pods.ts";
import { PlaceTracker } from "./placement/place-tracker.ts";
import { type PlacementAccess, PlacementState } from "./placement/placement-state.ts";
import { QuotaQueues } from "./placement/quota-queues.ts";
import { WaitingProxies } from "./placement/waiting-proxies.ts";
import { waitingIn } from "./waiting-in-member.ts";

const NODE_INDEX = "node";

/** Places proxies, keeps delegates and proxies alike, and ends both together. One key is one pod name. */
export class DelegationController {
  readonly placementAccess: PlacementAccess;
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
  /** The proxies that existed before this leader have been read. */
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
    this.placementAccess = {
      placementState: this.#placementState,
      identity: options.identity,
      namespaces: this.#namespaces.store,
      proxies: this.#proxies.store,
      observe: (key, pod) => observer.seen(key, pod),
      onRoom: () => this.onRoom(),
    };
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
          // A bug report with this line can be replayed.
          if (log.isLevelEnabled("debug")) {
            const about = { controller: "delegation", object: objectKey(view.ref), ...identify(view) };
            log.debug({ ...about, ...redacted<DecisionRecord>({ now, view, decision }) }, "decided");
          }
          return decision;
        },
        // Stray delegates go whatever fails for the proxy of that name.
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
      // Once more, as all owners are known now.
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

  /** Returns the number of proxies bound to a node; undefined before they have been read. */
  boundTo(nodeName: string): number | undefined {
    const { store } = this.#proxies;
    return store.synced ? store.countByIndex(NODE_INDEX, nodeName) : undefined;
  }

  /** Returns the number of unbound proxies whose delegates are in a member, or may be. */
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

  /** Returns the number of held delegates in a member. */
  heldIn(cluster: string): number {
    return this.#held.countIn(cluster);
  }

  /** Returns the proxies bound to a node. */
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

  /** Returns what the author wrote on the pod or its namespace; undefined also when it cannot be read. */
  apiMode(proxy: Stored<Pod>): ApiMode | undefined {
    return this.#placementState.view.apiMode(proxy);
  }

  /** Returns how the pod's workload is divided, and over which members; undefined when its author does not say. */
  sharing(proxy: Stored<Pod>): Sharing | undefined {
    return this.#placementState.view.sharing(proxy);
  }

  /** Tells authors of writes for their pods that are refused. */
  get refusals(): Refusals {
    return this.#executor.refusals;
  }

  /** Returns figures of waiting proxies, for metrics. */
  waiting(): ReturnType<WaitingProxies["summary"]> {
    return this.#waiting.summary();
  }

  /** Handles a change under the key, in this member if one is named. */
  onDelegate(key: ObjectKey, member?: Member): void {
    const delegate = member?.delegates.get(key);
    const proxy = this.#proxies.store.get(key);
    // Noted at once: waiting pods are decided on before each delegate's own proxy. Any client may copy a delegate under another name.
    if (member !== undefined && delegate !== undefined && proxy !== undefined && isFor(delegate, proxy)) {
      if (!endsUnstarted(delegate)) this.#placementState.held(proxy.metadata.uid, member.name);
    }
    this.#loop.enqueue(key);
  }

  /** Handles a change of a member's nodes: waiting proxies may fit now. */
  onCapacity(): void {
    this.#waiting.onCapacity();
  }

  /** Handles room that became free in a member. */
  onRoom(): void {
    this.#waiting.onRoom();
  }

  /** Handles the end of a delegate: a quota that counted it may have room. */
  onEnded(member: string, { metadata: { namespace = "" } }: Stored<Pod>): void {
    this.#quotas.onEnded({ member, namespace });
  }

  /** Handles a new connection to a member: what the old one showed of waiting proxies counts no more. */
  onReconnected(member: string): void {
    this.#waiting.onReconnected(member);
  }

  /** Handles a member that came back or was lost: its delegates and all waiting proxies are reconciled. */
  onConnection(member: Member): void {
    this.onCapacity();
    if (!member.reachable) return;
    for (const { metadata } of member.delegates.list()) this.#loop.enqueue(objectKey(metadata));
    this.onNodeReady(member.name);
  }

  /** Handles a change of a virtual node's readiness, or its out-of-service taint: its proxies are reconciled. */
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
    const { memories } = this.#placementState;
    const node = object.spec?.nodeName;
    const cluster = clusterOfNode(node);
    const moved = event.type === "updated" ? event.previous.spec?.nodeName !== node : true;
    if (cluster !== undefined && moved) this.#options.onBound(cluster, key);
    // Spreads and limits count live pods only.
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
      // In overflow mode no delegate is created before the Binding, nor in another member.
      if (!this.#leading && awaitsDelegate(object) && !asksHostFirst(object)) memories.noteInherited(uid);
      if (type === "updated" && !isSameRecord(event.previous, object)) this.#settle(object);
    } else {
      this.#waiting.add(key, object);
      // Gates can only be removed, so no earlier leader has placed a gated pod.
      if (!this.#leading && !isGated(object)) memories.noteInherited(uid);
    }
    if (type !== "deleted") this.#placementState.update(object);
    this.#options.onProxy(object);
    this.#loop.enqueue(key);
  }

  /** Ends the search of a proxy whose delegate is on record, also where the response to that write was lost. */
  #settle(proxy: Stored<Pod>): void {
    const member = memberOf(proxy);
    if (member === undefined || !isSettled(proxy)) return;
    if (this.#placementState.reservations.settle(proxy.metadata.uid, member, proxy)) this.#onFree();
  }

  /** Room became free, or a member takes pods again. */
  #onFree(): void {
    this.onRoom();
    this.#options.onRoom();
  }

  /** A proxy got or lost its place, so an even spread or a limit may admit another. */
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

/** Reports whether the proxy is bound and its delegate on record. */
function isSettled(proxy: Pod): boolean {
  return isBound(proxy) && !awaitsDelegate(proxy);
}

function isSameRecord(previous: Pod, next: Pod): boolean {
  const [before, now] = [previous, next].map(({ metadata }) => metadata?.annotations?.[DELEGATE_UID_ANNOTATION]);
  return isSettled(previous) && before === now;
}
