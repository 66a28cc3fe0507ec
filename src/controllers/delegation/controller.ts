import type { ApiMode } from "../../api/annotations.ts";
import { clusterOfNode, DELEGATION_LABEL, PROXY_LABEL, PROXY_LABEL_VALUE, virtualNodeName } from "../../api/keys.ts";
import { type Namespace, type ObjectKey, objectKey, objectRef, type Pod, type Stored } from "../../api/kubernetes.ts";
import { DEFAULT_OVERFLOW_AFTER_SECONDS } from "../../api/overflow.ts";
import type { PlacementDefaults } from "../../api/placement-defaults.ts";
import type { Member } from "../../clusters/member.ts";
import { namespaces, placementDefaults, pods } from "../../kube/resources.ts";
import type { Refusal } from "../../placement/candidate.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { podRequests } from "../../placement/requests.ts";
import { boundTo } from "../../pods/bound.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { isBound } from "../../pods/phase.ts";
import type { Timer } from "../../runtime/clock.ts";
import { Controller } from "../../runtime/controller.ts";
import { Reflector, type ReflectorEvent } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { USES_INDEX, usesOf } from "../dependencies/users.ts";
import type { Sharing } from "../preferences/controller.ts";
import type { OwnedProxies } from "../preferences/owned-proxies.ts";
import { decide } from "./decide.ts";
import { awaitsDelegate } from "./decide-awaited.ts";
import { isFor } from "./delegates.ts";
import { Executor } from "./execute.ts";
import type { FindPod, GroupName } from "./groups.ts";
import { HeldDelegates } from "./held-delegates.ts";
import { unknownView, viewOf } from "./member-view.ts";
import type { Action, MemberView, Observed } from "./model.ts";
import type { DelegationOptions } from "./options.ts";
import { NAMESPACE_INDEX, UID_INDEX } from "./placement-rules.ts";
import { PLACING_INDEXES, Placing } from "./placing.ts";
import { shapeOf } from "./shapes.ts";
import { PodWay } from "./way.ts";

const OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service";
const NODE_INDEX = "node";
// Delegates end all the time; proxies that wait are looked at together, this long after the first of those ends.
const ROOM_DELAY_MS = 250;
const FEW = 100;
const PLACED_DELAY_MS = 1000;

/** Places proxies, keeps delegates and proxies alike, and ends both together. One key is one pod name. */
export class DelegationController {
  readonly #options: DelegationOptions;
  readonly #proxies: Reflector<Pod>;
  readonly #namespaces: Reflector<Namespace>;
  readonly #placing: Placing;
  readonly #held: HeldDelegates;
  readonly #executor: Executor;
  readonly #defaults: Reflector<PlacementDefaults>;
  readonly #loop: Controller<ObjectKey, Observed, Action>;
  /** Proxies that have no node yet, looked at again when members change, and since when nothing but that is missing. */
  readonly #unbound = new Map<ObjectKey, number>();
  #roomTimer: Timer | undefined;
  #placedTimer: Timer | undefined;
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
        ...PLACING_INDEXES,
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
    this.#placing = new Placing({
      registry: options.registry,
      namespaces: () => this.#namespaces.store,
      defaults: () => this.#defaults.store,
      proxies: () => this.#proxies.store,
      homeApi: options.homeApi,
      clock,
      onGroup: (keys) => {
        for (const key of keys) this.#loop.enqueue(key);
      },
    });
    this.#held = new HeldDelegates(options);
    this.#executor = new Executor({
      ...options,
      held: this.#held,
      memories: this.#placing.memories,
      mayEnter: (proxyUid, member) => this.#placing.groups.mayEnter(proxyUid, member),
      shapes: this.#placing.shapes,
      proxyOf: (key) => this.#proxies.store.get(key),
      onRoom: () => this.onRoom(),
      waitingSince: (key) => this.#unbound.get(key),
      deletionCost: (proxyUid) => this.#placing.divisions.costAnnotations(proxyUid),
    });
    const way =
      options.traces &&
      new PodWay({
        traces: options.traces,
        host: options.identity.name,
        proxyOf: (key) => this.#proxies.store.get(key),
        memoryOf: (proxyUid) => this.#placing.memories.of(proxyUid),
        waitingSince: (key) => this.#unbound.get(key),
        now: () => clock.now(),
      });
    this.#loop = new Controller<ObjectKey, Observed, Action>(
      {
        name: "delegation",
        observe: (key) => this.#observe(key),
        identify,
        decide,
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
    this.#proxies.start();
    await this.#proxies.whenSynced(signal);
    this.#leading = true;
    for (const proxy of this.#proxies.store.list()) {
      // Again, now that all owners among them are known.
      this.#placing.rules.update(proxy);
      this.#loop.enqueue(objectKey(proxy.metadata));
    }
    for (const member of this.#options.registry.members()) {
      for (const { metadata } of member.delegates()) this.onDelegate(objectKey(metadata), member);
    }
  }

  async stop(): Promise<void> {
    this.#roomTimer?.cancel();
    this.#placedTimer?.cancel();
    await Promise.all([this.#proxies.stop(), this.#namespaces.stop(), this.#defaults.stop()]);
    await this.#loop.stop();
  }

  /** Number of proxies bound to a node. */
  boundTo(nodeName: string): number {
    return this.#proxies.store.countByIndex(NODE_INDEX, nodeName);
  }

  /** Number of proxies without a node whose delegates are in a member, or may be. */
  waitingIn(cluster: string): number {
    const member = this.#options.registry.member(cluster);
    let count = this.#executor.creatingIn(cluster);
    for (const key of this.#unbound.keys()) {
      const proxy = this.#proxies.store.get(key);
      if (proxy === undefined) continue;
      const delegate = member?.delegate(key);
      const isThere = isFor(delegate, proxy) && delegate !== undefined && !this.#isElsewhere(key, delegate, cluster);
      if (isThere || this.#placing.memories.of(proxy.metadata.uid).uncertain === cluster) count += 1;
    }
    return count;
  }

  /** A cluster that has joined under another name, too, and stays under that, shows the same delegate there. */
  #isElsewhere(key: ObjectKey, { metadata }: Stored<Pod>, cluster: string): boolean {
    return this.#options.registry
      .members()
      .filter(({ name, cluster: { metadata: other } }) => name !== cluster && other.deletionTimestamp === undefined)
      .some((other) => other.delegate(key)?.metadata.uid === metadata.uid);
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
    return this.#placing.divisions.proxies;
  }

  /** The host's proxies. */
  get proxies(): ReadStore<Pod> {
    return this.#proxies.store;
  }

  /** What the author wrote, on the pod or its namespace; undefined also when it cannot be read. */
  apiMode(proxy: Stored<Pod>): ApiMode | undefined {
    return this.#placing.view.apiMode(proxy);
  }

  /** How the pod's workload is to be divided, and over which members; undefined when its author does not say. */
  sharing(proxy: Stored<Pod>): Sharing | undefined {
    return this.#placing.view.sharing(proxy);
  }

  /** What a decision about a pod in overflow mode sees, which is no proxy yet; `find` has others that are none. */
  observeOverflow(pod: Stored<Pod>, find: FindPod): Observed {
    this.#placing.rules.update(pod, find);
    const key = objectKey(pod.metadata);
    return { ...this.#observed(key, pod), needs: () => undefined };
  }

  /** The pod's group, and the member that has its pods; undefined when it has none. */
  groupOf(pod: Stored<Pod>, find: FindPod): (GroupName & { readonly home?: string }) | undefined {
    const group = this.#placing.rules.groupOf(pod, find);
    const home = this.#placing.groups.placeOf(pod.metadata.uid)?.home;
    return group === undefined ? undefined : { ...group, ...(home === undefined ? {} : { home }) };
  }

  /** Whether the namespace has a mode of delegation. */
  optedIn(namespace: string): boolean {
    return this.#namespaces.store.get(objectKey({ name: namespace })) !== undefined;
  }

  /** How long the host must have found the pod unschedulable; what cannot be read is said when it is due. */
  overflowAfterSeconds(pod: Stored<Pod>): number {
    const parsed = this.#placing.rules.parse(pod);
    return (parsed.ok ? parsed.placement.overflowAfterSeconds : undefined) ?? DEFAULT_OVERFLOW_AFTER_SECONDS;
  }

  /** Keeps room in the member for the delegate of a pod that is about to be bound; false when its group may not go there now. */
  reserve(pod: Stored<Pod>, name: string, delegate: Pod): boolean {
    const { uid, namespace } = pod.metadata;
    if (!this.#placing.groups.mayEnter(uid, name)) return false;
    this.#placing.overflow(pod, name, this.#options.clock.now());
    this.#options.registry.member(name)?.load.reserve(uid, podRequests(delegate), namespace);
    return true;
  }

  /** The pod was not bound to the member. */
  giveUp(uid: string, name: string): void {
    // It was, though nobody has answered: from then on it is a proxy like any other.
    if (this.#proxies.store.countByIndex(UID_INDEX, uid) > 0) return;
    this.#options.registry.member(name)?.load.release(uid);
    this.#placing.giveUp(uid);
    this.onRoom();
  }

  /** The member would not take the pod, nor another of its shape. */
  refusedBy(pod: Stored<Pod>, refusal: Refusal): void {
    const member = this.#options.registry.member(refusal.cluster);
    if (member === undefined) return;
    this.#placing.shapes.refuse(member.name, shapeOf(pod), refusal, member.roomVersion, this.#options.clock.now());
  }

  /** The member's API server would take the pod; true when it had refused others of its shape. Its scheduler was not asked. */
  acceptedBy(pod: Stored<Pod>, name: string): boolean {
    const member = this.#options.registry.member(name);
    if (member === undefined || this.#placing.shapes.empty) return false;
    const shape = shapeOf(pod);
    const known = this.#placing.shapes.refusal(name, shape, "", member.roomVersion, this.#options.clock.now());
    return known?.refusal.reason === "RefusedByMember" && this.#placing.shapes.accept(name, shape);
  }

  /** A pod in overflow mode waits for no member any more. Its group forgets it, unless it is, or is to be, a proxy. */
  leave(uid: string): void {
    const known =
      this.#proxies.store.countByIndex(UID_INDEX, uid) > 0 || this.#placing.memories.of(uid).room !== undefined;
    if (!known) this.#placing.groups.remove(uid);
  }

  /** The proxies that nobody has taken yet, for metrics. */
  waiting(): { readonly count: number; readonly oldestSeconds: number } {
    let oldest = this.#options.clock.now();
    const now = oldest;
    let count = 0;
    for (const [key, since] of this.#unbound) {
      if ((this.#proxies.store.get(key)?.spec?.schedulingGates ?? []).length > 0) continue;
      count += 1;
      oldest = Math.min(oldest, since);
    }
    return { count, oldestSeconds: (now - oldest) / 1000 };
  }

  /** Something under the key changed, in this member if one is named. */
  onDelegate(key: ObjectKey, member?: Member): void {
    const delegate = member?.delegate(key);
    const uid = delegate === undefined ? undefined : ownerOf(delegate)?.uid;
    // Told at once: what waits is decided on before each delegate's own proxy is looked at.
    if (uid !== undefined) {
      this.#placing.divisions.proxies.held(uid, member?.name);
      this.#placing.groups.held(uid, member?.name);
    }
    this.#loop.enqueue(key);
  }

  /** A member's nodes changed: proxies that wait may fit now. */
  onCapacity(): void {
    // Each look at one is a look at all members: what many of them are to hear of, they hear together.
    if (this.#unbound.size > FEW) this.onRoom();
    else this.#lookAtWaiting();
  }

  #lookAtWaiting(): void {
    for (const key of this.#unbound.keys()) this.#loop.enqueue(key);
  }

  /** A delegate has ended: a proxy that waits may have its place. */
  onRoom(): void {
    if (this.#roomTimer !== undefined || this.#unbound.size === 0) return;
    this.#roomTimer = this.#options.clock.after(ROOM_DELAY_MS, () => {
      this.#roomTimer = undefined;
      this.#lookAtWaiting();
    });
  }

  /** What was read of a member counts no more: its new connection must show first what it has of the proxies that wait. */
  onReconnected(member: string): void {
    for (const key of this.#unbound.keys()) {
      const proxy = this.#proxies.store.get(key);
      if (proxy !== undefined) this.#placing.memories.unproven(proxy.metadata.uid, member);
    }
  }

  /** A member came back or was lost: everything it has, and everything that waits, is looked at again. */
  onConnection(member: Member): void {
    this.onCapacity();
    if (!member.reachable) return;
    for (const { metadata } of member.delegates()) this.#loop.enqueue(objectKey(metadata));
    this.onNodeReady(member.name);
  }

  /** The virtual node of a Cluster is Ready, or not any more, or out of service: its proxies say so, or go. */
  onNodeReady(cluster: string): void {
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
    if (cluster !== undefined && moved) this.#options.onBound(cluster);
    if (type === "deleted") {
      this.#unbound.delete(key);
      // It may have had a promise of room without ever getting a delegate.
      const { room } = this.#placing.memories.of(uid);
      if (room !== undefined) this.#options.registry.member(room)?.load.release(uid);
      this.#placing.remove(object);
    } else if (isBound(object)) {
      this.#unbound.delete(key);
      if (moved && this.#leading) this.#onPlaced();
    } else {
      this.#noteWaiting(key, object);
      if (!this.#leading) this.#placing.memories.inherited(uid);
    }
    if (type !== "deleted") this.#placing.update(object);
    this.#options.onProxy(object);
    this.#loop.enqueue(key);
  }

  /** A proxy has its place: one that was told why it waits may now have another (an even spread, a limit). */
  #onPlaced(): void {
    if (this.#placedTimer !== undefined || this.#unbound.size === 0) return;
    this.#placedTimer = this.#options.clock.after(PLACED_DELAY_MS, () => {
      this.#placedTimer = undefined;
      for (const key of this.#unbound.keys()) {
        const uid = this.#proxies.store.get(key)?.metadata.uid ?? "";
        if (this.#placing.memories.of(uid).reported !== undefined) this.#loop.enqueue(key);
      }
    });
  }

  #noteWaiting(key: ObjectKey, { spec }: Stored<Pod>): void {
    const gated = (spec?.schedulingGates ?? []).length > 0;
    if (gated || !this.#unbound.has(key)) this.#unbound.set(key, this.#options.clock.now());
  }

  #onNamespace({ metadata }: Stored<Namespace>): void {
    this.#options.onDefaults();
    for (const proxy of this.#proxies.store.byIndex(NAMESPACE_INDEX, metadata.name)) {
      this.#placing.rules.update(proxy);
      if (!isBound(proxy)) this.#loop.enqueue(objectKey(proxy.metadata));
    }
  }

  #onDefaults(): void {
    this.#options.onDefaults();
    for (const proxy of this.#proxies.store.list()) this.#placing.rules.update(proxy);
    this.onCapacity();
  }

  #observe(key: ObjectKey): Observed | undefined {
    // Before the host's proxies are known, every delegate would look like an orphan.
    if (!this.#proxies.store.synced) return undefined;
    const proxy = this.#proxies.store.get(key);
    const members = [...this.#concerned(key, proxy).map((member) => viewOf(member, key)), ...this.#unknown(proxy)];
    if (proxy === undefined && members.every(({ delegate }) => delegate === undefined)) {
      this.#options.registry.forget(key);
      return undefined;
    }
    const { uid = "" } = proxy?.metadata ?? {};
    const holder = members.find(({ delegate }) => delegate !== undefined && ownerOf(delegate)?.uid === uid);
    if (holder !== undefined && proxy !== undefined && (!isBound(proxy) || awaitsDelegate(proxy))) {
      this.#placing.memories.found(uid, holder.name, this.#options.clock.now());
    }
    return this.#observed(key, proxy, members);
  }

  #observed(
    key: ObjectKey,
    proxy: Stored<Pod> | undefined,
    members = [...this.#options.registry.members().map((member) => viewOf(member, key)), ...this.#unknown(proxy)],
  ): Observed {
    const waitingSince = this.#unbound.get(key);
    return {
      ref: objectRef(key),
      host: this.#options.identity,
      proxy,
      members,
      memory: this.#placing.memories.of(proxy?.metadata.uid ?? ""),
      ...(waitingSince === undefined ? {} : { waitingSince }),
      ...this.#placing.view.of(proxy),
      apiAccess: (member) => this.#placing.view.apiAccess(proxy, member),
      needs: () => (proxy === undefined ? undefined : this.#options.dependencies.needs(proxy)),
      specIn: (candidate) => this.#placing.view.specIn(proxy, candidate),
      unheard: (member) => this.#unheard(member),
      outOfService: (member) => this.#outOfService(member),
    };
  }

  /** Only a proxy that needs a place is looked at in all members: a hundred of them cost the others nothing. */
  #concerned(key: ObjectKey, proxy: Stored<Pod> | undefined): readonly Member[] {
    const { registry } = this.#options;
    if (proxy !== undefined && !isBound(proxy)) return registry.members();
    const concerned = new Set(registry.holders(key));
    const { uid = "" } = proxy?.metadata ?? {};
    for (const name of [proxy === undefined ? undefined : boundTo(proxy), this.#placing.memories.of(uid).uncertain]) {
      const member = name === undefined ? undefined : registry.member(name);
      if (member !== undefined) concerned.add(member);
    }
    return [...concerned];
  }

  /** Clusters that this controller has never reached, for want of credentials: a proxy may have its delegate there all the same. */
  #unknown(proxy: Stored<Pod> | undefined): MemberView[] {
    if (proxy === undefined) return [];
    const { registry } = this.#options;
    const name = isBound(proxy) ? boundTo(proxy) : undefined;
    return registry
      .unconnected()
      .filter(({ metadata }) => name === undefined || metadata.name === name)
      .map((cluster) => unknownView(cluster, registry.problem(cluster.metadata.name) ?? "it is not connected"));
  }

  #unheard(member: string): boolean {
    const node = this.#options.virtualNodes.get(objectKey({ name: virtualNodeName(member) }));
    return node !== undefined && !isNodeReady(node);
  }

  #outOfService(member: string): boolean {
    const node = this.#options.virtualNodes.get(objectKey({ name: virtualNodeName(member) }));
    return node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE_TAINT) ?? false;
  }
}

/** The proxy's uid, of which every line about a pod tells, whoever writes it. */
function identify({ proxy, members }: Observed): Readonly<Record<string, string>> {
  if (proxy !== undefined) return { proxy: proxy.metadata.uid };
  for (const { delegate } of members) {
    const uid = delegate === undefined ? undefined : ownerOf(delegate)?.uid;
    if (uid !== undefined) return { proxy: uid };
  }
  return {};
}
