import type { ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { standsFor } from "../../copies/copy.ts";
import {
  type Dependency,
  type DependencyKey,
  type DependencyKind,
  type DependencyRef,
  dependencyKey,
  dependencyRef,
  isClass,
  usesOf,
} from "../../pods/dependencies.ts";
import { isBound, isTerminal } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { Controller } from "../../runtime/controller.ts";
import type { ReflectorEvent } from "../../runtime/reflector.ts";
import { Copies } from "../copying/copies.ts";
import { isOfEarlier } from "../copying/failures.ts";
import { IdleTimes } from "../copying/idle.ts";
import type { Copier, CopyingOptions } from "../copying/options.ts";
import { isPrepared, type Needs, type Readiness, type Why } from "../delegation/model/needs.ts";
import { decide, isHeldByUsers, servesPods } from "./decide.ts";
import { digested, RESOURCES, withoutContent } from "./digest.ts";
import { Executor } from "./execute.ts";
import { type Family, follows } from "./family.ts";
import {
  type Action,
  type CopyKey,
  copyKey,
  copyRef,
  type Digested,
  dependencyOf,
  type Observed,
  type Source,
} from "./model.ts";
import { Sources } from "./sources.ts";
import { Users } from "./users.ts";

// Each may have been as large as a megabyte, and all answers of a member share what may be on its way.
const PAGE_SIZE = 20;

export interface DependencyOptions extends CopyingOptions {
  readonly family: Family;
  /** A member's copies have been read: it can be given pods that use something. */
  readonly onRead: () => void;
}

/** Keeps in each member what delegates use, of one family of kinds: one copy of each object for all that share it. */
export class DependencyController implements Copier {
  readonly #options: DependencyOptions;
  readonly #sources: Sources;
  readonly #copies: Copies<DependencyKind, Digested>;
  readonly #users: Users;
  readonly #executor: Executor;
  readonly #loop: Controller<CopyKey, Observed, Action>;
  readonly #idle: IdleTimes<CopyKey>;

  constructor(options: DependencyOptions) {
    this.#options = options;
    const { host, identity, registry, memberNamespaces, family, clock, log } = options;
    this.#users = new Users(options.proxies, family.of);
    this.#idle = new IdleTimes(clock);
    this.#sources = new Sources({
      host,
      onSource: (key) => this.#onSource(key),
      onState: (kind, namespace) => {
        for (const dependency of this.#users.wantedIn(kind, namespace)) this.#onSource(dependency);
        for (const member of registry.members()) {
          for (const copy of this.#copies.inNamespace(member, kind, namespace)) {
            this.#loop.enqueue(copyKey(member.name, dependencyKey(copy)));
          }
        }
      },
      isNeeded: (kind, namespace) => this.#users.anyIn(kind, namespace),
      clock,
      log,
    });
    this.#copies = new Copies({
      hostId: identity.id,
      resources: new Map(family.kinds.map((kind) => [kind, RESOURCES[kind]])),
      transform: (kind, object) => withoutContent(digested(kind, object)),
      pageSize: PAGE_SIZE,
      onCopy: (member, copy) => this.#onCopy(member, dependencyKey(copy)),
      onRead: (member) => {
        this.#onRead(member);
        options.onRead();
      },
      clock,
      log,
    });
    this.#executor = new Executor({
      registry,
      memberNamespaces,
      hostId: identity.id,
      onRefusal: (key) => this.#wake(dependencyOf(key)),
      clock,
    });
    this.#loop = new Controller<CopyKey, Observed, Action>(
      {
        name: family.name,
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#executor.execute(action, context),
      },
      options,
    );
  }

  async stop(): Promise<void> {
    await Promise.all([this.#sources.stop(), this.#copies.stop()]);
    await this.#loop.stop();
  }

  /** The host's proxies have been read: who uses what in a member is known. */
  onProxies(member: Member): void {
    this.#onRead(member);
  }

  /** Members were connected, or left. */
  onMembers(): void {
    const { registry, family } = this.#options;
    this.#copies.follow(registry.members());
    if (family.selector !== undefined) this.#onSelectors();
    this.#loop.enqueueKnown((key) => registry.member(copyRef(key).member) === undefined);
  }

  /** The operator may have changed what members are given. */
  #onSelectors(): void {
    const { registry, family } = this.#options;
    for (const kind of family.kinds) {
      if (this.#isActive() && this.#users.anyIn(kind, "")) this.#sources.need(kind, "");
    }
    for (const member of registry.members()) this.#onRead(member);
  }

  /** A member was lost or found again. */
  onConnection(member: Member): void {
    if (member.reachable) this.#onRead(member);
  }

  /** A proxy came, changed or went. */
  onProxy(event: ReflectorEvent<Pod>): void {
    const { object: proxy, type } = event;
    const { of } = this.#options.family;
    const dependencies = of(proxy);
    if (dependencies.length === 0) return;
    // What has ended mounts nothing any more, however long it stays.
    const isOver = type === "deleted" || isTerminal(proxy);
    for (const { kind, namespace } of dependencies) {
      if (isOver) this.#sources.release(kind, namespace);
      else if (this.#isActive()) this.#sources.need(kind, namespace);
    }
    if (!isOver && !isBound(proxy)) return;
    for (const copy of this.#users.forget(proxy.metadata.uid)) this.#loop.enqueue(copy);
    if (event.type === "updated" && usesOf(event.previous).join() === usesOf(proxy).join()) return;
    const member = memberOf(proxy);
    if (member === undefined) return;
    for (const dependency of dependencies) this.#loop.enqueue(copyKey(member, dependencyKey(dependency)));
  }

  /** A delegate has ended or gone: what it used may be of no use any more. */
  onEnded(member: Member, delegate: Stored<Pod>): void {
    for (const dependency of this.#options.family.of(delegate)) {
      this.#loop.enqueue(copyKey(member.name, dependencyKey(dependency)));
    }
  }

  /** What a proxy needs, and who has it; undefined when it needs nothing. */
  needs(proxy: Stored<Pod>): Needs | undefined {
    const dependencies = this.#options.family.of(proxy);
    if (dependencies.length === 0 || !this.#isActive()) return undefined;
    const existing: Dependency[] = [];
    const gone: Dependency[] = [];
    let isRead = true;
    let unreadable: Why | undefined;
    let missing: Why | undefined;
    for (const dependency of dependencies) {
      const { kind, namespace, name, optional } = dependency;
      const source = this.#sources.of(kind, namespace, name);
      if (source.state === "present") existing.push(dependency);
      else if (source.state === "missing" && isClass(kind)) continue;
      else if (source.state === "missing" && optional) gone.push(dependency);
      else if (source.state === "missing") missing ??= dependency.missing;
      else {
        isRead = false;
        if (source.message !== undefined) unreadable ??= { reason: "FailedMount", message: source.message };
      }
    }
    const why = unreadable ?? missing;
    if (why !== undefined) return { state: "missing", ...why };
    if (!isRead) return { state: "awaited" };
    return { state: "there", in: (member) => this.#readiness(member, existing, gone) };
  }

  /** Has what the proxy needs made in the member, and keeps it until the proxy is bound or gone; true when all is there. */
  prepare(key: ObjectKey, proxyUid: string, member: string): boolean {
    const proxy = this.#options.proxies().get(key);
    if (proxy === undefined || proxy.metadata.uid !== proxyUid || isBound(proxy)) return true;
    if (this.#options.family.of(proxy).length === 0 || !this.#isActive()) return true;
    for (const copy of this.#users.place(proxy, member)) this.#loop.enqueue(copy);
    return isPrepared(this.needs(proxy), member);
  }

  /** Something of the member's own, which was to be used in place, has gone: the host's is copied. */
  onMissing(delegate: Pod, name: string, kind: DependencyKind): boolean {
    const member = this.#options.registry.member(name);
    let isThere = false;
    for (const dependency of this.#options.family.of(delegate)) {
      if (dependency.kind !== kind) continue;
      const key = dependencyKey(dependency);
      const { namespace, name: object } = dependency;
      isThere ||=
        member !== undefined && isClass(kind) && this.#copies.of(member, kind, namespace, object) !== undefined;
      if (!this.#executor.missInPlace(copyKey(name, key))) continue;
      this.#loop.enqueue(copyKey(name, key));
      this.#wake(key);
    }
    return isThere;
  }

  /** Reports whether the member is given all that the pod uses: what it lacks will be there before the delegate. */
  provides(pod: Pod, name: string): boolean {
    const member = this.#options.registry.member(name);
    if (member === undefined || !this.#isActive()) return false;
    const dependencies = this.#options.family.of(pod);
    for (const { kind, namespace } of dependencies) this.#sources.need(kind, namespace);
    return dependencies.every((one) => this.#sourceFor(member, one).state === "present");
  }

  /** Reports whether any member is given objects of these kinds: the host's are not even read otherwise. */
  #isActive(): boolean {
    const { selector } = this.#options.family;
    if (selector === undefined) return true;
    return this.#options.registry.members().some(({ cluster }) => selector(cluster.spec) !== undefined);
  }

  /** Returns the host's object as far as the member is given it. */
  #sourceFor(member: Member, { kind, namespace, name }: DependencyRef): Source {
    const { family } = this.#options;
    const source = this.#sources.of(kind, namespace, name);
    if (source.state !== "present" || family.selector === undefined) return source;
    return follows(family, member.cluster.spec, source.object) ? source : { state: "missing" };
  }

  #readiness(name: string, existing: readonly Dependency[], gone: readonly Dependency[]): Readiness {
    const member = this.#options.registry.member(name);
    if (member === undefined) return "unprepared";
    const dependencies = existing.filter((one) => this.#sourceFor(member, one).state === "present");
    if (dependencies.length === 0 && gone.length === 0) return "ready";
    if (!this.#copies.read(member)) {
      const refused =
        `its ${this.#options.family.title} cannot be read yet; if this lasts, let it join again, since the access ` +
        "that an earlier version of Legation was given does not include them";
      return { refused };
    }
    let readiness: Readiness = "ready";
    // What the host has no more must not be mounted from a copy that is on its way out.
    for (const dependency of gone) {
      const { kind, namespace, name: object } = dependency;
      const copy = this.#copies.of(member, kind, namespace, object);
      if (copy !== undefined && !this.#users.requires(member, dependencyKey(dependency))) readiness = "unprepared";
    }
    for (const dependency of dependencies) {
      const key = copyKey(name, dependencyKey(dependency));
      // Whatever else of it is refused there.
      if (this.#isThere(member, dependency, key)) continue;
      const refusal = this.#executor.refusal(key);
      if (refusal?.inPlace === true) continue;
      if (refusal !== undefined) return { refused: refusal.message };
      if (this.#isHeldByUsers(member, dependency, key)) {
        const { kind, name: object } = dependency;
        return {
          refused: `${kind} ${object} there is as it was before it changed on the host, and is replaced when no pod of it is left`,
        };
      }
      if (this.#isKeptAway(member, dependency, key)) {
        return { refused: `somebody there keeps deleting ${dependency.kind} ${dependency.name}, which the pod needs` };
      }
      readiness = "unprepared";
    }
    return readiness;
  }

  /** Somebody in the member deletes each copy that is made. */
  #isKeptAway(member: Member, { kind, namespace, name }: Dependency, key: CopyKey): boolean {
    const source = this.#sources.of(kind, namespace, name);
    return (
      this.#copies.of(member, kind, namespace, name) === undefined &&
      source.state === "present" &&
      this.#executor.contestedUntil(key, source.object.metadata.resourceVersion) !== undefined
    );
  }

  #isHeldByUsers(member: Member, dependency: Dependency, key: CopyKey): boolean {
    const { kind, namespace, name } = dependency;
    const copy = this.#copies.of(member, kind, namespace, name);
    const source = this.#sources.of(kind, namespace, name);
    if (copy === undefined || source.state !== "present") return false;
    const isMounted = member.delegates.usersOf(dependencyKey(dependency)) > 0;
    return isHeldByUsers(kind, copy, source.object, isMounted || this.#executor.keptUntil(key) !== undefined);
  }

  #isThere(member: Member, { kind, namespace, name }: Dependency, key: CopyKey): boolean {
    const copy = this.#copies.of(member, kind, namespace, name);
    const source = this.#sources.of(kind, namespace, name);
    if (copy === undefined || source.state !== "present") return false;
    if (copy.metadata.deletionTimestamp !== undefined || this.#executor.isLeaving(key, copy)) return false;
    if (servesPods(kind, copy, source.object, this.#options.identity)) return true;
    const { resourceVersion } = source.object.metadata;
    return standsFor(copy, source.object) && this.#executor.contestedUntil(key, resourceVersion) !== undefined;
  }

  #onSource(key: DependencyKey): void {
    const { kind, namespace, name } = dependencyRef(key);
    for (const member of this.#options.registry.members()) {
      const copy = copyKey(member.name, key);
      const concerns =
        this.#copies.of(member, kind, namespace, name) !== undefined ||
        this.#users.uses(member, key) ||
        this.#executor.refusal(copy) !== undefined;
      // A namespace has many objects that no pod names, and a host many members.
      if (concerns) this.#loop.enqueue(copy);
    }
    this.#wake(key);
  }

  #onCopy(member: Member, key: DependencyKey): void {
    this.#loop.enqueue(copyKey(member.name, key));
    this.#wake(key);
  }

  #onRead(member: Member): void {
    if (!this.#copies.read(member)) return;
    for (const copy of this.#copies.in(member)) this.#loop.enqueue(copyKey(member.name, dependencyKey(copy)));
    for (const key of this.#users.placedIn(member.name)) {
      this.#loop.enqueue(key);
      this.#wake(dependencyOf(key));
    }
    for (const delegate of member.delegates.list()) this.onEnded(member, delegate);
    // What was refused a minute before it was lost may be tried again.
    for (const key of this.#executor.refusedIn(member.name)) this.#loop.enqueue(key);
  }

  #wake(key: DependencyKey): void {
    for (const proxy of this.#users.waitingFor(key)) this.#options.onProxy(proxy);
  }

  #observe(key: CopyKey): Observed | undefined {
    const ref = copyRef(key);
    const member = this.#options.registry.member(ref.member);
    if (member === undefined) return this.#forget(key);
    // Before the host's proxies are known, nothing would seem to be used.
    if (!this.#options.proxies().synced) return undefined;
    const dependency = dependencyOf(key);
    const copy = this.#copies.of(member, ref.kind, ref.namespace, ref.name);
    const used = this.#users.uses(member, dependency);
    const refused = this.#executor.refusal(key);
    if (copy === undefined && !used && refused === undefined) return this.#forget(key);
    const source = this.#sourceFor(member, ref);
    const version = source.state === "present" ? source.object.metadata.resourceVersion : undefined;
    const contestedUntil = version === undefined ? undefined : this.#executor.contestedUntil(key, version);
    const mounted = member.delegates.usersOf(dependency) > 0;
    const keptUntil = this.#executor.keptUntil(key);
    return {
      ref,
      host: this.#options.identity,
      usable: member.reachable && member.read && this.#copies.read(member),
      ...(copy === undefined ? {} : { copy, leaving: this.#executor.isLeaving(key, copy) }),
      source,
      ...(contestedUntil === undefined ? {} : { contestedUntil }),
      ...(keptUntil === undefined ? {} : { keptUntil }),
      used,
      // Looked for only when it matters.
      ...(source.state === "missing" && used ? { required: this.#users.requires(member, dependency) } : {}),
      mounted,
      idleSince: this.#idle.note(key, used || mounted),
      // What pods are told of it stands until the copy is there.
      ...(refused === undefined
        ? {}
        : {
            refused: {
              until: refused.until,
              ofEarlier: used && version !== undefined && isOfEarlier(refused, version),
            },
          }),
    };
  }

  #forget(key: CopyKey): undefined {
    this.#idle.forget(key);
    this.#executor.forget(key);
  }
}
