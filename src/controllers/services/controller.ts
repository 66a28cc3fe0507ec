import { DELEGATE_UID_ANNOTATION } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { hasSelector, type ServiceKind, type ServiceObject, selects, serviceOfSlice } from "../../copies/services.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { isBound, isTerminal } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { Controller } from "../../runtime/controller.ts";
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import { Copies } from "../copying/copies.ts";
import { IdleTimes } from "../copying/idle.ts";
import type { Copier, CopyingOptions } from "../copying/options.ts";
import { Placements } from "../copying/placements.ts";
import { isPrepared, type Needs, type Readiness } from "../delegation/model/needs.ts";
import { decide } from "./decide.ts";
import { Executor } from "./execute.ts";
import { ExportStatus } from "./export-status.ts";
import { type Action, type CopyKey, type CopyRef, copyKey, copyRef, type Observed, type Source } from "./model.ts";
import { Patience } from "./patience.ts";
import { RESOURCES, Sources } from "./sources.ts";

/** Keeps in each member the Services by whose names pods there find each other. */
export class ServiceController implements Copier {
  readonly #options: CopyingOptions;
  readonly #sources: Sources;
  readonly #copies: Copies<ServiceKind, ServiceObject>;
  readonly #placements = new Placements();
  readonly #patience: Patience;
  readonly #executor: Executor;
  readonly #exportStatus: ExportStatus;
  readonly #loop: Controller<CopyKey, Observed, Action>;
  readonly #idle: IdleTimes<CopyKey>;

  constructor(options: CopyingOptions) {
    this.#options = options;
    const { host, identity, registry, memberNamespaces, recorder, clock, log } = options;
    this.#patience = new Patience({ clock, onChange: options.onProxy });
    this.#idle = new IdleTimes(clock);
    this.#sources = new Sources({
      host,
      onService: (service) => this.#onService(service),
      onSlice: (slice) => this.#onSlice(slice),
      onExport: (namespace, name) => {
        this.#enqueueEverywhere("Service", namespace, name);
        this.#exportStatus.onExport(namespace, name);
      },
      onState: () => {
        this.#patience.wakeAll();
        for (const member of registry.members()) this.#onRead(member);
      },
      clock,
      log,
    });
    this.#copies = new Copies<ServiceKind, ServiceObject>({
      hostId: identity.id,
      resources: RESOURCES,
      transform: (_kind, object) => object,
      onCopy: (member, copy) => {
        this.#loop.enqueue(copyKey({ member: member.name, ...copy }));
        if (copy.kind !== "Service") return;
        this.#patience.wake(copy.namespace);
        // Its endpoints wait for it.
        const source = this.#sources.of("Service", copy.namespace, copy.name);
        if (source.state === "present") this.#enqueueIn(member.name, source.object);
      },
      onRead: (member) => {
        this.#onRead(member);
        this.#patience.wakeAll();
      },
      clock,
      log,
    });
    this.#executor = new Executor({
      recorder,
      hostId: identity.id,
      hostName: identity.name,
      registry,
      memberNamespaces,
      onRefusal: ({ namespace }) => this.#patience.wake(namespace),
      onExported: (member) => this.#exportStatus.listenTo(member),
      clock,
    });
    this.#exportStatus = new ExportStatus({
      ...options,
      hostId: identity.id,
      exportOf: (namespace, name) => this.#sources.exportOf(namespace, name),
      hasPods: (member, namespace) => this.#placements.any(member, namespace),
    });
    this.#loop = new Controller<CopyKey, Observed, Action>(
      {
        name: "services",
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#executor.execute(action, context),
      },
      options,
    );
  }

  async stop(): Promise<void> {
    this.#patience.stop();
    await Promise.all([this.#sources.stop(), this.#copies.stop()]);
    await Promise.all([this.#exportStatus.stop(), this.#loop.stop()]);
  }

  /** The host's proxies have been read: who is where in a member is known. */
  onProxies(member: Member): void {
    for (const delegate of member.delegates.list()) this.#onHeld(member, delegate);
    this.#onRead(member);
  }

  /** Members were connected, or left. */
  onMembers(): void {
    const { registry } = this.#options;
    const members = registry.members();
    this.#copies.follow(members);
    this.#patience.follow(members);
    this.#exportStatus.onMembers(members);
    this.#loop.enqueueKnown((key) => registry.member(copyRef(key).member) === undefined);
  }

  /** A member was lost or found again. */
  onConnection(member: Member): void {
    if (member.reachable) this.#onRead(member);
  }

  /** A delegate came, changed or went. */
  onDelegate(member: Member, key: ObjectKey): void {
    const delegate = member.delegates.get(key);
    if (delegate !== undefined) this.#onHeld(member, delegate);
  }

  /** A proxy came, changed or went. */
  onProxy({ type, object: proxy }: ReflectorEvent<Pod>): void {
    const { uid } = proxy.metadata;
    if (type === "deleted" || isTerminal(proxy)) {
      this.#patience.forget(uid);
      const left = this.#placements.forget(uid);
      if (left !== undefined) this.#onLeft(left.member, left.namespace);
      if (this.#options.proxies().size === 0) this.#sources.release();
      return;
    }
    this.#sources.need();
    if (!isBound(proxy)) {
      const member = this.#placements.memberOf(uid);
      if (member !== undefined) this.#place(proxy, member);
      return;
    }
    // One that has overflowed waits for its delegate with its node.
    if (proxy.metadata.annotations?.[DELEGATE_UID_ANNOTATION] === undefined)
      this.#patience.wait(objectKey(proxy.metadata), uid);
    else this.#patience.forget(uid);
    const member = memberOf(proxy);
    if (member !== undefined) this.#place(proxy, member);
  }

  /** The Services that a proxy should find in its member, and who has them; undefined when there are none. */
  needs(proxy: Stored<Pod>): Needs | undefined {
    const { uid, namespace = "", annotations } = proxy.metadata;
    // It has waited before its first delegate, and not for long: for another one nobody waits.
    if (annotations?.[DELEGATE_UID_ANNOTATION] !== undefined) return undefined;
    if (this.#sources.pending) {
      return { state: "there", in: () => (this.#patience.over(uid) ? "ready" : "unprepared") };
    }
    const services = this.#servicesOf(proxy);
    if (services.length === 0) return undefined;
    return { state: "there", in: (member) => this.#readiness(uid, namespace, member, services) };
  }

  /** Has them made in the member; true when they are there, or have been waited for long enough. */
  prepare(key: ObjectKey, proxyUid: string, member: string): boolean {
    const proxy = this.#options.proxies().get(key);
    if (proxy === undefined || proxy.metadata.uid !== proxyUid || isBound(proxy)) return true;
    this.#place(proxy, member);
    if (isPrepared(this.needs(proxy), member)) return true;
    this.#patience.wait(key, proxyUid);
    return false;
  }

  #readiness(uid: string, namespace: string, name: string, services: readonly Stored<ServiceObject>[]): Readiness {
    const member = this.#options.registry.member(name);
    if (member === undefined || this.#patience.over(uid)) return "ready";
    // One that joined with an earlier version never gives the right to read them: nobody waits for that.
    if (!this.#copies.read(member)) return this.#patience.overFor(member) ? "ready" : "unprepared";
    const isThere = (service: Stored<ServiceObject>): boolean => {
      const ref = { member: name, kind: "Service", namespace, name: service.metadata.name } as const;
      const key = copyKey(ref);
      const copy = this.#copies.of(member, ref.kind, namespace, ref.name);
      if (this.#executor.isRefused(key)) return true;
      // What somebody there keeps deleting is not waited for.
      if (copy === undefined) return this.#executor.contestedUntil(key, service) !== undefined;
      return copy.metadata.deletionTimestamp === undefined && !this.#executor.isLeaving(key, copy);
    };
    return services.every(isThere) ? "ready" : "unprepared";
  }

  /** Those whose endpoint the pod is, and those that have no selector. */
  #servicesOf({ metadata }: Stored<Pod>): Stored<ServiceObject>[] {
    const { namespace = "", labels = {} } = metadata;
    return this.#sources.servicesIn(namespace).filter((service) => !hasSelector(service) || selects(service, labels));
  }

  #place(proxy: Stored<Pod>, member: string): void {
    const from = this.#placements.memberOf(proxy.metadata.uid);
    if (!this.#placements.place(proxy, member)) return;
    const { namespace = "" } = proxy.metadata;
    if (from !== undefined && from !== member && !this.#placements.any(from, namespace)) this.#onLeft(from, namespace);
    for (const service of this.#servicesOf(proxy)) this.#enqueueIn(member, service);
  }

  /** A delegate of an earlier leader: its proxy is on its way there, though nothing on the host says so yet. */
  #onHeld(member: Member, delegate: Stored<Pod>): void {
    const owner = ownerOf(delegate);
    const proxy = owner && this.#options.proxies().get(objectKey(delegate.metadata));
    if (proxy === undefined || proxy.metadata.uid !== owner?.uid || isBound(proxy) || isTerminal(proxy)) return;
    if (this.#placements.memberOf(owner.uid) === undefined) this.#place(proxy, member.name);
  }

  /** A delegate has ended or gone. */
  onEnded(member: Member, { metadata }: Stored<Pod>): void {
    const { namespace = "" } = metadata;
    if (member.delegates.liveIn(namespace) === 0) this.#onLeft(member.name, namespace);
  }

  #onLeft(name: string, namespace: string): void {
    const member = this.#options.registry.member(name);
    if (member === undefined) return;
    for (const copy of this.#copies.in(member)) {
      if (copy.namespace === namespace) this.#loop.enqueue(copyKey({ member: name, ...copy }));
    }
  }

  #onService(service: Stored<ServiceObject>): void {
    const { namespace = "", name } = service.metadata;
    for (const { name: member } of this.#options.registry.members()) {
      if (this.#placements.any(member, namespace)) this.#enqueueIn(member, service);
      else this.#enqueueKnown({ member, kind: "Service", namespace, name });
    }
  }

  #onSlice(slice: Stored<ServiceObject>): void {
    this.#enqueueEverywhere("EndpointSlice", slice.metadata.namespace ?? "", slice.metadata.name);
  }

  #enqueueEverywhere(kind: ServiceKind, namespace: string, name: string): void {
    for (const { name: member } of this.#options.registry.members()) {
      const ref = { member, kind, namespace, name };
      if (this.#placements.any(member, namespace)) this.#loop.enqueue(copyKey(ref));
      else this.#enqueueKnown(ref);
    }
  }

  /** A host has many Services that no pod needs, and many members: only what is there, or remembered, is looked at. */
  #enqueueKnown(ref: CopyRef): void {
    const key = copyKey(ref);
    if (this.#loop.knows(key)) this.#loop.enqueue(key);
  }

  #enqueueIn(member: string, service: Stored<ServiceObject>): void {
    const { namespace = "", name } = service.metadata;
    this.#loop.enqueue(copyKey({ member, kind: "Service", namespace, name }));
    for (const slice of this.#sources.slicesOf(service)) {
      this.#loop.enqueue(copyKey({ member, kind: "EndpointSlice", namespace, name: slice.metadata.name }));
    }
  }

  #onRead(member: Member): void {
    if (!this.#copies.read(member)) return;
    for (const copy of this.#copies.in(member)) this.#loop.enqueue(copyKey({ member: member.name, ...copy }));
    for (const namespace of this.#placements.namespacesIn(member.name)) {
      for (const service of this.#sources.servicesIn(namespace)) this.#enqueueIn(member.name, service);
    }
  }

  #observe(key: CopyKey): Observed | undefined {
    const { registry, proxies, identity } = this.#options;
    const ref = copyRef(key);
    const { kind, namespace, name } = ref;
    const member = registry.member(ref.member);
    if (member === undefined) return this.#forget(key);
    // Before the host's proxies are known, nobody would seem to be anywhere.
    if (!proxies().synced) return undefined;
    const copy = this.#copies.of(member, kind, namespace, name);
    const source = this.#sourceOf(member, kind, namespace, name);
    const used = this.#placements.any(member.name, namespace);
    // What runs keeps what it has, whatever the host knows of it.
    const kept = used || member.delegates.liveIn(namespace) > 0;
    const wanted =
      used && copy === undefined && source.state === "present" && this.#isWanted(member, kind, source.object);
    if (copy === undefined && !wanted) return this.#forget(key);
    const refused = source.state === "present" ? this.#executor.refusal(key, source.object) : undefined;
    const settled = this.#executor.settled(key);
    const contestedUntil = source.state === "present" ? this.#executor.contestedUntil(key, source.object) : undefined;
    return {
      ref,
      host: identity,
      usable: member.reachable && this.#copies.read(member),
      ...(copy === undefined ? {} : { copy, leaving: used && this.#executor.isLeaving(key, copy) }),
      source,
      wanted,
      kept,
      idleSince: this.#idle.note(key, kept),
      ...(refused === undefined ? {} : { refused }),
      ...(settled === undefined ? {} : { settled }),
      ...(contestedUntil === undefined ? {} : { contestedUntil }),
      exported: kind === "Service" ? this.#sources.exportOf(namespace, name) : { state: "missing" },
      exportDue: copy === undefined ? 0 : this.#executor.exportDue(key, copy.metadata.uid),
    };
  }

  #forget(key: CopyKey): undefined {
    this.#idle.forget(key);
    this.#executor.forget(key);
  }

  /** A slice goes where its Service goes; one of a Service with a selector goes nowhere. */
  #sourceOf(member: Member, kind: ServiceKind, namespace: string, name: string): Source {
    const source = this.#sources.of(kind, namespace, name);
    if (kind === "Service" || source.state !== "present") return source;
    const owner = serviceOfSlice(source.object);
    const service = this.#sources.of("Service", namespace, owner);
    if (service.state !== "present") return service;
    // A member's own Service of that name must not get endpoints that its authors did not give it.
    if (this.#copies.of(member, "Service", namespace, owner) === undefined) return { state: "missing" };
    return hasSelector(service.object) ? { state: "missing" } : source;
  }

  #selectsOneIn(member: string, service: Stored<ServiceObject>): boolean {
    const all = this.#placements.labelsIn(member, service.metadata.namespace ?? "");
    for (const labels of all) if (selects(service, labels)) return true;
    return false;
  }

  /** What has no selector is wanted wherever there are pods. */
  #isWanted(member: Member, kind: ServiceKind, object: Stored<ServiceObject>): boolean {
    return kind === "EndpointSlice" || !hasSelector(object) || this.#selectsOneIn(member.name, object);
  }
}
