import { DELEGATE_UID_ANNOTATION, RELAY_ANNOTATION, WHOLE_KEY } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import { withoutAllocated } from "../../api/service-fields.ts";
import type { Member } from "../../clusters/member.ts";
import { JoinedSlices } from "../../copies/joined-slices.ts";
import { hasWholeFinalizer, isWantedInMembers } from "../../copies/objects.ts";
import { ObjectsInMembers } from "../../copies/objects-in-members.ts";
import { RelayedSlices } from "../../copies/relayed-slices.ts";
import {
  hasSelector,
  isExported,
  isOfRelay,
  isOfSelector,
  SERVICES,
  type ServiceObject,
  selects,
  serviceOfSlice,
} from "../../copies/services.ts";
import type { Source } from "../../copies/source.ts";
import { isPreparedIn, type Needs, type Preparation } from "../../placement/needs.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { isBound, isTerminal } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import { Copier } from "../copying/copier.ts";
import { type CopyKey, type CopyRef, copyKey, copyRef, type Use } from "../copying/model.ts";
import { type PodCopier, type PodCopierOptions, unboundProxy } from "../copying/pod-copier.ts";
import { PodsInMembers } from "../copying/pods-in-members.ts";
import { ExportController } from "./exports/controller.ts";
import type { JoinedNetworks } from "./joined-networks.ts";
import { WaitLimit } from "./wait-limit.ts";

const SERVICE = "Service";
const SLICE = "EndpointSlice";
const SERVICE_INDEX = "service";

export interface ServiceOptions extends PodCopierOptions {
  readonly networks: JoinedNetworks;
  /** Legation itself exports from members of a network. */
  readonly mcs: boolean;
}

/** Gives each member the Services by whose names its pods find each other. */
export class ServiceController implements PodCopier {
  readonly #options: ServiceOptions;
  readonly #copier: Copier<ServiceObject>;
  readonly #exports: ExportController;
  readonly #placements = new PodsInMembers();
  readonly #waitLimit: WaitLimit;
  /** Copies of whole Services. Their EndpointSlices and exports are this controller's, as those of all others. */
  readonly #ofWhole = new Set<CopyKey>();
  /** A member has one copy of a whole Service, its pods' too. */
  readonly #wholeServices = new ObjectsInMembers<ServiceObject>(withoutAllocated);
  readonly #networks: JoinedNetworks;
  #wereAnyJoined = false;
  readonly #joinedSlices = new JoinedSlices();
  readonly #relayedSlices = new RelayedSlices();

  constructor(options: ServiceOptions) {
    this.#options = options;
    const { clock, proxies, registry } = options;
    this.#waitLimit = new WaitLimit({ clock, onChange: (key) => options.events.emit("needs", key) });
    this.#networks = options.networks;
    this.#copier = new Copier<ServiceObject>({
      ...options,
      name: "services",
      kinds: Object.values(SERVICES),
      indexes: { [SERVICE_INDEX]: (slice) => [`${slice.metadata.namespace ?? ""}/${serviceOfSlice(slice)}`] },
      clause: "",
      whenForeign: (member) => `pods in ${member} see that one`,
      selectors: (kind) => (kind === SLICE && this.#networks.areAny ? {} : undefined),
      beforeDelete: async (member, ref, { copy, signal }) => {
        if (ref.kind === SERVICE && isExported(copy)) await this.#exports.removeExport(member, ref, signal);
        return undefined;
      },
      users: {
        areKnown: () => proxies.synced,
        use: (member, ref, source) => this.#use(member, ref, source),
        anyNeeds: () => this.#isNeeded(),
        sourceFor: (member, ref, source) => this.#sourceFor(member, ref, source),
        onCopy: (member, { kind, namespace, name }) => {
          if (kind !== SERVICE) return;
          this.#noteWhole({ member, kind, namespace, name });
          this.#waitLimit.wake(namespace);
          this.#exports.onCopy(member, namespace, name);
          // EndpointSlices follow their Service's copy.
          const source = this.#copier.sources.of({ kind, namespace, name });
          if (source.state === "present") this.#enqueueSlices(member, source.object);
        },
        onSource: (kind, object) => {
          if (kind !== SERVICE) return;
          if (object.metadata.annotations?.[RELAY_ANNOTATION] !== undefined) options.events.emit("relayed");
          for (const slice of this.#slicesOf(object)) this.#copier.enqueueConcerned(this.#copier.nameOf(SLICE, slice));
        },
        onSources: () => {
          this.#waitLimit.wakeAll();
          for (const member of registry.members()) this.#copier.onMember(member);
          this.#exports.onRead();
        },
        onMember: (member) => {
          for (const namespace of this.#placements.namespacesIn(member.name)) {
            for (const service of this.#servicesIn(namespace)) this.#enqueueIn(member.name, service);
          }
          for (const ref of [...this.#ofWhole].map(copyRef)) {
            const source = this.#copier.sources.of(ref);
            if (ref.member === member.name && source.state === "present")
              this.#enqueueSlices(ref.member, source.object);
          }
        },
        onRead: (member) => {
          this.#waitLimit.wakeAll();
          this.#exports.onRead([member]);
        },
      },
    });
    this.#exports = new ExportController({
      ...options,
      copier: this.#copier,
      exportsItself: (member) => options.mcs && this.#networks.isJoined(member),
      counts: (member, namespace, name) =>
        this.#placements.any(member, namespace) ||
        this.#ofWhole.has(copyKey({ member, kind: SERVICE, namespace, name })),
    });
  }

  async stop(): Promise<void> {
    this.#waitLimit.stop();
    await this.#exports.stop();
    await Promise.all([this.#copier.stop(), this.#networks.stop()]);
  }

  onProxies(member: Member): void {
    for (const delegate of member.delegates.list()) this.#onHeld(member, delegate);
    this.#copier.onMember(member);
  }

  onMembers(): void {
    const members = this.#options.registry.members();
    this.#copier.onMembers();
    this.#networks.update();
    for (const key of this.#ofWhole) {
      if (this.#options.registry.member(copyRef(key).member) === undefined) this.#ofWhole.delete(key);
    }
    if (!this.#isNeeded()) this.#release();
    this.#waitLimit.follow(members);
    this.#exports.onMembers(members);
  }

  onNetworks(): void {
    const { areAny } = this.#networks;
    if (areAny !== this.#wereAnyJoined) this.#copier.sources.renew(SLICE, "");
    this.#wereAnyJoined = areAny;
    for (const member of this.#options.registry.members()) this.#copier.onMember(member);
    this.#exports.onRead();
  }

  onConnection(member: Member): void {
    if (!member.reachable) return;
    this.#copier.onMember(member);
    this.#exports.onRead([member]);
  }

  onDelegate(member: Member, key: ObjectKey): void {
    const delegate = member.delegates.get(key);
    if (delegate !== undefined) this.#onHeld(member, delegate);
  }

  onEnded(member: Member, { metadata }: Stored<Pod>): void {
    const { namespace = "" } = metadata;
    if (member.delegates.liveIn(namespace) === 0) this.#onLeft(member.name, namespace);
  }

  onProxy({ type, object: proxy }: ReflectorEvent<Pod>): void {
    const { uid } = proxy.metadata;
    if (type === "deleted" || isTerminal(proxy)) {
      this.#waitLimit.forget(uid);
      const left = this.#placements.forget(uid);
      if (left !== undefined) this.#onLeft(left.member, left.namespace);
      if (!this.#isNeeded()) this.#release();
      return;
    }
    this.#need();
    if (!isBound(proxy)) {
      const member = this.#placements.memberOf(uid);
      if (member !== undefined) this.#place(proxy, member);
      return;
    }
    // A pod may be bound before its delegate is made.
    if (proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION] === undefined)
      this.#waitLimit.wait(objectKey(proxy.metadata), uid);
    else this.#waitLimit.forget(uid);
    const member = memberOf(proxy);
    if (member !== undefined) this.#place(proxy, member);
  }

  needs(proxy: Stored<Pod>): Needs | undefined {
    const { uid, annotations } = proxy.metadata;
    // A proxy waits before its first delegate only.
    if (annotations?.[DELEGATE_UID_ANNOTATION] !== undefined) return undefined;
    if (this.#copier.sources.isPending(SERVICE, "")) {
      return { state: "there", in: () => (this.#waitLimit.over(uid) ? "prepared" : "unprepared") };
    }
    const alone = this.#servicesOf(proxy, false);
    const joined = this.#networks.areAny ? this.#servicesOf(proxy, true) : alone;
    if (joined.length === 0) return undefined;
    return {
      state: "there",
      in: (member) => this.#preparation(uid, member, this.#networks.isJoined(member) ? joined : alone),
    };
  }

  prepare(key: ObjectKey, proxyUid: string, member: string): boolean {
    const proxy = unboundProxy(this.#options.proxies, key, proxyUid);
    if (proxy === undefined) return true;
    this.#place(proxy, member);
    if (isPreparedIn(this.needs(proxy), member)) return true;
    this.#waitLimit.wait(key, proxyUid);
    return false;
  }

  #preparation(uid: string, name: string, services: readonly Stored<ServiceObject>[]): Preparation {
    const member = this.#options.registry.member(name);
    if (member === undefined || this.#waitLimit.over(uid)) return "prepared";
    // A member that joined with an earlier version never gives the right to read its Services.
    if (!this.#copier.copies.read(member)) return this.#waitLimit.overFor(member) ? "prepared" : "unprepared";
    const isThere = (service: Stored<ServiceObject>): boolean => {
      const { exists, stays, refusal, held } = this.#copier.standing(member, this.#copier.nameOf(SERVICE, service));
      // No pod waits for a copy that is refused, or that another client keeps deleting.
      return stays || refusal !== undefined || (!exists && held !== undefined);
    };
    return services.every(isThere) ? "prepared" : "unprepared";
  }

  #isNeeded(): boolean {
    return this.#options.proxies.size > 0 || this.#ofWhole.size > 0;
  }

  #noteWhole(ref: CopyRef): void {
    const member = this.#options.registry.member(ref.member);
    const copy = member && this.#copier.copies.of(member, SERVICE, ref.namespace, ref.name);
    if (copy?.metadata.labels?.[WHOLE_KEY] !== undefined) {
      this.#ofWhole.add(copyKey(ref));
      this.#need();
    } else if (this.#ofWhole.delete(copyKey(ref)) && !this.#isNeeded()) this.#release();
  }

  #need(): void {
    for (const kind of Object.keys(SERVICES)) this.#copier.sources.need(kind, "");
    this.#exports.need();
  }

  #release(): void {
    for (const kind of Object.keys(SERVICES)) this.#copier.sources.release(kind, "");
    this.#exports.release();
  }

  /** A copy is made for its endpoints, or for any pod if it has no selector. Slices of a whole Service go where it goes. */
  #use(member: Member, { kind, namespace }: CopyRef, source: Source<ServiceObject>): Use {
    const isOfWhole = kind === SLICE && source.state === "present" && this.#isOfWhole(member, source.object);
    if (isOfWhole) return { demand: this.#isEnding(source.object) ? "kept" : "needed" };
    const isPlaced = this.#placements.any(member.name, namespace);
    if (isPlaced && source.state === "present" && this.#isWanted(member, source.object)) return { demand: "needed" };
    return { demand: isPlaced || member.delegates.liveIn(namespace) > 0 ? "kept" : "unused" };
  }

  #isOfWhole(member: Member, slice: Stored<ServiceObject>): boolean {
    const { namespace = "" } = slice.metadata;
    return this.#ofWhole.has(copyKey({ member: member.name, kind: SERVICE, namespace, name: serviceOfSlice(slice) }));
  }

  /** Reports whether the slice's Service is being deleted: its copy may be left to the member, with the slices that it has. */
  #isEnding(slice: Stored<ServiceObject>): boolean {
    const { namespace = "" } = slice.metadata;
    const service = this.#copier.sources.of({ kind: SERVICE, namespace, name: serviceOfSlice(slice) });
    return service.state === "present" && service.object.metadata.deletionTimestamp !== undefined;
  }

  #isWanted(member: Member, object: Stored<ServiceObject>): boolean {
    if (!hasSelector(object) || this.#networks.isJoined(member.name)) return true;
    for (const labels of this.#placements.labelsIn(member.name, object.metadata.namespace ?? "")) {
      if (selects(object, labels)) return true;
    }
    return false;
  }

  /** A slice goes where its Service goes; one of a Service with a selector in a network only, with the endpoints of other clusters. */
  #sourceFor(member: Member, { kind, namespace }: CopyRef, source: Source<ServiceObject>): Source<ServiceObject> {
    if (source.state !== "present") return source;
    if (kind === SERVICE) return this.#serviceFor(member, source.object);
    const name = serviceOfSlice(source.object);
    const service = this.#copier.sources.of({ kind: SERVICE, namespace, name });
    if (service.state !== "present") return service;
    // The member's own Service of that name must not get endpoints that its authors did not give it.
    if (this.#copier.copies.of(member, SERVICE, namespace, name) === undefined) return { state: "missing" };
    if (!hasSelector(service.object)) {
      if (isOfRelay(source.object)) return this.#relayedSlices.of(source.object, member.name);
      return isOfSelector(source.object) ? { state: "missing" } : source;
    }
    if (isWantedInMembers(service.object)) return { state: "missing" };
    const { trafficDistribution } = service.object.spec ?? {};
    return this.#joinedSlices.of(source.object, member.name, this.#networks.now, trafficDistribution);
  }

  #serviceFor(member: Member, object: Stored<ServiceObject>): Source<ServiceObject> {
    // Such a Service waits for its whole copies, and a new one for pods would outlive them.
    if (object.metadata.deletionTimestamp !== undefined && hasWholeFinalizer(object)) return { state: "missing" };
    return isWantedInMembers(object)
      ? this.#wholeServices.of(object, member.candidate())
      : { state: "present", object };
  }

  /** Returns the Services that a member gets for a pod. Members that are joined by a network get all of its namespace. */
  #servicesOf({ metadata }: Stored<Pod>, isJoined: boolean): Stored<ServiceObject>[] {
    const { namespace = "", labels = {} } = metadata;
    const services = this.#servicesIn(namespace);
    return isJoined ? services : services.filter((service) => !hasSelector(service) || selects(service, labels));
  }

  #servicesIn(namespace: string): Stored<ServiceObject>[] {
    return this.#copier.sources.inNamespace(SERVICE, namespace);
  }

  #place(proxy: Stored<Pod>, member: string): void {
    const placed = this.#placements.place(proxy, member);
    if (placed === undefined) return;
    if (placed.left !== undefined) this.#onLeft(placed.left.member, placed.left.namespace);
    for (const service of this.#servicesOf(proxy, this.#networks.isJoined(member))) this.#enqueueIn(member, service);
  }

  /** Places the proxy of an earlier leader's delegate: nothing on the host says yet that it is on its way to the member. */
  #onHeld(member: Member, delegate: Stored<Pod>): void {
    const owner = ownerOf(delegate);
    const proxy = owner && this.#options.proxies.get(objectKey(delegate.metadata));
    if (proxy === undefined || proxy.metadata.uid !== owner?.uid || isBound(proxy) || isTerminal(proxy)) return;
    if (this.#placements.memberOf(owner.uid) === undefined) this.#place(proxy, member.name);
  }

  #onLeft(name: string, namespace: string): void {
    const member = this.#options.registry.member(name);
    if (member !== undefined) this.#copier.enqueueNamespace(member, namespace);
  }

  #enqueueIn(member: string, service: Stored<ServiceObject>): void {
    this.#copier.enqueue({ member, ...this.#copier.nameOf(SERVICE, service) });
    this.#enqueueSlices(member, service);
  }

  #enqueueSlices(member: string, service: Stored<ServiceObject>): void {
    for (const slice of this.#slicesOf(service)) {
      this.#copier.enqueue({ member, ...this.#copier.nameOf(SLICE, slice) });
    }
  }

  #slicesOf({ metadata: { namespace = "", name } }: Stored<ServiceObject>): Stored<ServiceObject>[] {
    return this.#copier.sources.byIndex(SLICE, namespace, { index: SERVICE_INDEX, value: `${namespace}/${name}` });
  }
}
