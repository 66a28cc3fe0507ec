import { clusterOfNode, DELEGATION_LABEL, virtualNodeName } from "../../api/keys.ts";
import { type Namespace, type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { PlacementDefaults } from "../../api/placement-defaults.ts";
import { optionalDefaults } from "../../api/resources.ts";
import type { Member } from "../../clusters/member.ts";
import { namespaces } from "../../kube/resources.ts";
import { asksHostFirst } from "../../pods/overflow.ts";
import { isBound, isGated, isLive } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import { Controller } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { NAMESPACE_INDEX } from "../../scheduling/known-pods.ts";
import { type PlacementAccess, PlacementState } from "../../scheduling/placement-state.ts";
import { WaitingProxies } from "../../scheduling/retries/waiting-proxies.ts";
import type { FindWorkload } from "../../scheduling/workload.ts";
import type { ControllerEvents } from "../events.ts";
import { NODE_INDEX } from "../proxies.ts";
import { Executor } from "./actions/execute.ts";
import { PodTraces } from "./actions/traces.ts";
import { decide } from "./decide.ts";
import type { Action } from "./decision/decision.ts";
import {
  awaitsDelegate,
  endsUnstarted,
  isBoundWithDelegate,
  isFor,
  isForced,
  isNewlyRecorded,
} from "./decision/delegates.ts";
import { recorded } from "./decision/on-demand.ts";
import { type DecisionRecord, redacted } from "./decision/redact.ts";
import type { View } from "./decision/view.ts";
import { HostClasses } from "./host-classes.ts";
import { identifyPod, Observer } from "./observe.ts";
import type { DelegationOptions, DelegationState } from "./options.ts";
import { PlaceTracker } from "./place-tracker.ts";
import { unboundIn } from "./unbound-in-member.ts";
import { WorkloadWishes } from "./workload-wishes.ts";

/** The host's objects by which pods are placed, other than pods and members. */
export interface PlacementObjects {
  readonly namespaces: readonly Stored<Namespace>[];
  readonly defaults: readonly Stored<PlacementDefaults>[];
  readonly findWorkload: FindWorkload;
}

/** Places proxies, keeps delegates and proxies alike, and ends both together. One key is one pod name. */
export class DelegationController {
  readonly placementState: PlacementState;
  readonly placementAccess: PlacementAccess;
  readonly #options: DelegationOptions;
  readonly #proxies: ReadStore<Pod>;
  readonly #namespaces: Reflector<Namespace>;
  readonly #classes: HostClasses;
  readonly #wishes: WorkloadWishes;
  readonly #executor: Executor;
  readonly #defaults: Reflector<PlacementDefaults>;
  readonly #loop: Controller<ObjectKey, View, Action>;
  readonly #waiting: WaitingProxies;
  /** The proxies that existed before this leader have been read, so keys are decided on. */
  #leading = false;

  constructor(options: DelegationOptions) {
    this.#options = options;
    const { host: client, registry, identity, events, refusedWrites, clock, log } = options;
    const proxies = options.proxies.store;
    this.#proxies = proxies;
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
      resource: optionalDefaults,
      clock,
      log,
      onEvent: () => this.#onDefaults(),
    });
    this.#classes = new HostClasses(options);
    const host = options.everywhere ?? options.host;
    this.#wishes = new WorkloadWishes({ ...options, host, onChange: (namespace) => this.#onWishes(namespace) });
    this.placementState = new PlacementState({
      registry,
      classes: this.#classes.admission,
      wishes: this.#wishes,
      namespaces: this.#namespaces.store,
      defaults: this.#defaults.store,
      confinement: options.confinement,
      proxies,
      homeApi: options.homeApi,
      clock,
      writes: refusedWrites.writes,
      onGroup: (keys) => {
        for (const key of keys) this.#loop.enqueue(key);
        events.emit("groupMoved");
      },
    });
    const { memories, retries } = this.placementState;
    this.#waiting = new WaitingProxies({
      clock,
      memories,
      retries,
      proxies,
      reconcile: (key) => this.#loop.enqueue(key),
      reconcileBehind: (keys, done) => this.#loop.enqueueBehind(keys, done),
    });
    const state: DelegationState = {
      placementState: this.placementState,
      proxies,
      waiting: this.#waiting,
    };
    const observer = new Observer({ ...options, ...state });
    const tracker = new PlaceTracker({ registry, clock, ...state });
    this.placementAccess = {
      placementState: this.placementState,
      identity,
      proxies,
      observe: (key, pod) => observer.seen(key, pod),
      events,
    };
    this.#executor = new Executor(options, state);
    const podTraces =
      options.traces && new PodTraces({ traces: options.traces, host: identity.name, memories, clock, ...state });
    this.#loop = new Controller<ObjectKey, View, Action>(
      {
        name: "delegation",
        observe: (key) => {
          tracker.update(key);
          return observer.observe(key);
        },
        identify: identifyPod,
        decide: (view, now) => {
          const decision = decide(view, now);
          // A bug report with this line can be replayed.
          if (log.isLevelEnabled("debug")) {
            const about = { controller: "delegation", object: objectKey(view.ref), ...identifyPod(view) };
            log.debug({ ...about, ...redacted<DecisionRecord>({ now, view: recorded(view), decision }) }, "decided");
          }
          return decision;
        },
        // Stray delegates go whatever fails for the proxy of that name.
        standsAlone: (action) =>
          action.type === "sweep" || (action.type === "delete" && (action.surplus === true || action.forced === true)),
        // The host answers the Binding.
        mayInterrupt: (action) => "member" in action && action.type !== "bind",
        execute: (action, context) => {
          const run = (): ReturnType<Executor["execute"]> => this.#executor.execute(action, context);
          return podTraces === undefined ? run() : podTraces.follow(action, context, run);
        },
      },
      options,
    );
    this.#subscribe(events);
  }

  /** Reads what placement depends on, then begins to read the proxies. */
  async read(signal: AbortSignal): Promise<void> {
    this.#namespaces.start();
    this.#defaults.start();
    await this.#namespaces.whenSynced(signal);
    await this.#defaults.whenSynced(signal);
    await this.#classes.start(signal);
    await this.#wishes.start(signal);
    this.#options.proxies.start();
  }

  /** Waits for the proxies, then decides. Members may come before or after. */
  async start(signal: AbortSignal): Promise<void> {
    const { proxies, registry } = this.#options;
    await proxies.whenSynced(signal);
    this.#leading = true;
    const behind: ObjectKey[] = [];
    for (const proxy of this.#proxies.list()) {
      // Once more, as all owners are known now.
      this.placementState.podRules.update(proxy);
      const key = objectKey(proxy.metadata);
      if (isBound(proxy)) behind.push(key);
      else this.#loop.enqueue(key);
    }
    for (const member of registry.members()) {
      for (const { metadata } of member.delegates.list()) {
        const key = objectKey(metadata);
        this.#noteDelegate(member, key);
        behind.push(key);
      }
    }
    // Pods that wait do not wait for the thousands that run.
    this.#loop.enqueueBehind(behind, () => {});
  }

  async stop(): Promise<void> {
    this.#waiting.stop();
    const { proxies } = this.#options;
    const read = [proxies, this.#namespaces, this.#defaults, this.#classes, this.#wishes];
    await Promise.all(read.map((each) => each.stop()));
    await this.#loop.stop();
  }

  /** The classes by which the host's admission completes pods. */
  get hostClasses(): HostClasses["admission"] {
    return this.#classes.admission;
  }

  /** Returns the host's objects by which pods are placed, for a simulation. */
  placementObjects(): PlacementObjects {
    return {
      namespaces: this.#namespaces.store.list(),
      defaults: this.#defaults.store.list(),
      findWorkload: (namespace, workload) => this.#wishes.find(namespace, workload),
    };
  }

  waitingIn(cluster: string): number {
    const { registry } = this.#options;
    const waiting = this.#waiting.list();
    const known = unboundIn(cluster, { registry, waiting, placementState: this.placementState });
    return known + this.#executor.creatingIn(cluster);
  }

  waiting(): ReturnType<WaitingProxies["summary"]> {
    return this.#waiting.summary();
  }

  #subscribe(events: Events<ControllerEvents>): void {
    events.on("proxy", (event) => this.#onProxy(event));
    events.on("delegate", (member, key) => this.#onDelegate(member, key));
    events.on("needs", (key) => this.#loop.enqueue(key));
    events.on("refusedWrite", (key) => this.#loop.enqueue(key));
    events.on("connection", (member) => this.#onConnection(member));
    events.on("reconnected", (member) => this.#waiting.onReconnected(member));
    events.on("nodeReadiness", (cluster) => this.#onNodeReadiness(cluster));
    events.on("ended", ({ name: member }, { metadata: { namespace = "" } }) => {
      this.#waiting.onEnded({ member, namespace });
    });
    for (const name of ["responsive", "roomFreed"] as const) events.on(name, () => this.#waiting.onRoom());
    events.on("followRules", () => this.#onGroupRules());
    events.on("placesChanged", () => this.#waiting.onPlaces());
    for (const name of ["cluster", "memberNodes", "nodeSpec", "homeApi", "copiesRead"] as const) {
      events.on(name, () => this.#waiting.onMembers());
    }
  }

  #onDelegate(member: Member, key: ObjectKey): void {
    this.#noteDelegate(member, key);
    this.#enqueue(key);
  }

  /** Notes a delegate at once: waiting pods are decided on before its own proxy. */
  #noteDelegate(member: Member, key: ObjectKey): void {
    const delegate = member.delegates.get(key);
    const proxy = this.#proxies.get(key);
    // Any client may copy a delegate under another name.
    if (delegate !== undefined && proxy !== undefined && isFor(delegate, proxy) && !endsUnstarted(delegate)) {
      this.placementState.noteDelegate(proxy.metadata.uid, member.name);
    }
  }

  /** Enqueues a key, which `start` does for all that there are when it begins. */
  #enqueue(key: ObjectKey): void {
    if (this.#leading) this.#loop.enqueue(key);
  }

  /** Handles a member that came back or was lost: its delegates and all waiting proxies are reconciled. */
  #onConnection(member: Member): void {
    this.#waiting.onMembers();
    if (!member.reachable) return;
    for (const { metadata } of member.delegates.list()) this.#enqueue(objectKey(metadata));
    this.#onNodeReadiness(member.name);
  }

  #onNodeReadiness(cluster: string): void {
    this.#waiting.onMembers();
    for (const { metadata } of this.#proxies.byIndex(NODE_INDEX, virtualNodeName(cluster))) {
      this.#enqueue(objectKey(metadata));
    }
  }

  #onProxy(event: ReflectorEvent<Pod>): void {
    const { events } = this.#options;
    const { type, object } = event;
    const key = objectKey(object.metadata);
    const { uid } = object.metadata;
    const { memories } = this.placementState;
    const node = object.spec?.nodeName;
    const cluster = clusterOfNode(node);
    // No earlier leader has seen a pod that came after the first list.
    const isOlder = !this.#proxies.synced;
    const moved = event.type === "updated" ? event.previous.spec?.nodeName !== node : true;
    if (cluster !== undefined && moved) events.emit("bound", cluster, key);
    // Spreads and limits count live pods only.
    const wasLive = isLive(event.type === "updated" ? event.previous : object);
    if (wasLive && (type === "deleted" || !isLive(object))) events.emit("placesChanged");
    if (type === "deleted") {
      this.#waiting.quotas.leave(uid);
      this.#waiting.remove(key);
      if (this.placementState.remove(object)) events.emit("roomFreed");
    } else if (isBound(object)) {
      if (isBoundWithDelegate(object) || !isLive(object)) this.#waiting.quotas.leave(uid);
      this.#waiting.remove(key);
      if (moved && this.#leading) events.emit("placesChanged");
      // In overflow mode no delegate is created before the Binding, nor in another member.
      if (isOlder && awaitsDelegate(object) && !asksHostFirst(object)) memories.noteInherited(uid);
      if (type === "updated" && isNewlyRecorded(event.previous, object)) this.#noteBound(object);
    } else {
      this.#waiting.add(key, object);
      // Gates can only be removed, so no earlier leader has placed a gated pod.
      if (isOlder && !isGated(object)) memories.noteInherited(uid);
    }
    if (type !== "deleted") this.placementState.update(object);
    // Earlier writes to a member must not hold up a forced deletion.
    if (type === "updated" && isForced(object) && !isForced(event.previous)) this.#loop.interrupt(key);
    else this.#enqueue(key);
  }

  /** Ends the search of a proxy whose delegate is on record, also where the response to that write was lost. */
  #noteBound(proxy: Stored<Pod>): void {
    const member = memberOf(proxy);
    if (member === undefined) return;
    if (this.placementState.reservations.noteBound(proxy.metadata.uid, member, proxy))
      this.#options.events.emit("roomFreed");
  }

  #onWishes(namespace: string): void {
    this.#options.events.emit("wishes", namespace);
    this.#reconsider(namespace);
  }

  /** Decides anew on a namespace's pods without a node. */
  #reconsider(namespace: string): void {
    for (const proxy of this.#proxies.byIndex(NAMESPACE_INDEX, namespace)) {
      if (!isBound(proxy)) this.#loop.enqueue(objectKey(proxy.metadata));
    }
  }

  #onNamespace({ metadata }: Stored<Namespace>): void {
    this.#options.events.emit("defaultsChanged");
    for (const proxy of this.#proxies.byIndex(NAMESPACE_INDEX, metadata.name)) {
      this.placementState.podRules.update(proxy);
    }
    this.#reconsider(metadata.name);
  }

  #onDefaults(): void {
    this.#options.events.emit("defaultsChanged");
    this.#onGroupRules();
    this.#waiting.onMembers();
  }

  #onGroupRules(): void {
    for (const proxy of this.#proxies.list()) this.placementState.podRules.update(proxy);
    // A pod of a new group is where its delegate is.
    for (const member of this.#options.registry.members()) {
      for (const { metadata } of member.delegates.list()) this.#onDelegate(member, objectKey(metadata));
    }
  }
}
