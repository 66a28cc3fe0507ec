import { defined } from "../../api/defined.ts";
import { WHOLE_KEY } from "../../api/keys.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import { standsFor } from "../../copies/copy-metadata.ts";
import { type CopiedKind, type Drift, driftOf, type Selectors } from "../../copies/kind.ts";
import type { Source } from "../../copies/source.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { IN_FLIGHT_MS } from "../../kube/request-ends.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import { Controller, type ControllerOptions } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import type { HoldReason } from "../../runtime/held-writes.ts";
import type { IndexFunction } from "../../runtime/store.ts";
import { Copies } from "./copies.ts";
import { decide } from "./decide.ts";
import { ContentDigests } from "./digests.ts";
import { CopyExecutor, type ExecutorOptions } from "./executor.ts";
import {
  type Action,
  type CopyKey,
  type CopyRef,
  copyKey,
  copyRef,
  type ObjectName,
  type Observed,
  type Use,
} from "./model.ts";
import type { CopyRefusal } from "./refusals.ts";
import { Sources } from "./sources.ts";

// The answer to a deletion follows the watch that shows it, and is no event.
const CHANGING_AGAIN_MS = 100;

/** Users of copies: pods, or whole objects, which use their own. */
export interface CopyUsers<T extends KubeObject> {
  /** Reports whether all users are known: until then no copy is written or deleted. */
  areKnown(): boolean;
  /** Called often: reads indexes only. */
  use(member: Member, ref: CopyRef, source: Source<T>): Use;
  /** An empty namespace stands for the whole cluster. */
  anyNeeds(kind: string, namespace: string): boolean;
  /** Returns the source as the member is given it. Default: as it is. */
  sourceFor?(member: Member, ref: CopyRef, source: Source<T>): Source<T>;
  onCopy(member: string, ref: ObjectName): void;
  onSource(kind: string, object: Stored<T>): void;
  /** An empty namespace stands for the whole cluster. */
  onSources(kind: string, namespace: string): void;
  /** The users in the member are to be enqueued: its copies were read, or it answers again. */
  onMember(member: Member): void;
  onRead?(member: Member): void;
  onMemberState?(member: Member): void;
}

export interface CopierOptions<T extends KubeObject>
  extends ControllerOptions,
    Pick<ExecutorOptions<T>, "clause" | "whenForeign" | "beforeDelete"> {
  readonly name: string;
  readonly kinds: readonly CopiedKind<T>[];
  readonly users: CopyUsers<T>;
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "member" | "members">;
  readonly memberNamespaces: Pick<MemberNamespaces, "createIn">;
  readonly recorder: Pick<EventRecorder, "record">;
  /** Sources are watched in the namespaces of their users only. Default: one watch per kind covers the cluster. */
  readonly perNamespace?: boolean;
  /** Copies of one kind are written before those of the others are read. Default: they depend on each other. */
  readonly areKindsIndependent?: boolean;
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
  /** Returns what selects the kind's sources now; `sources.renew` follows a change. Default: what its record says. */
  readonly selectors?: ((kind: string) => Selectors | undefined) | undefined;
}

export interface CopyStanding {
  /** There is a copy, though it may be on its way out. */
  readonly exists: boolean;
  readonly stays: boolean;
  readonly ofSource: boolean;
  /** Absent without a copy or a source. */
  readonly drift?: Drift;
  readonly refusal?: CopyRefusal;
  /** When a refused copy may be tried again; epoch ms. */
  readonly refusedUntil?: number;
  /** Why the last write failed, though the next one may succeed. */
  readonly failing?: string;
  readonly held?: HoldReason;
  /** Who keeps changing or deleting the copy, so that it is left alone for a while. */
  readonly contested?: string;
  /** Why the member refuses the copy's deletion. */
  readonly deletionRefusal?: string;
  /** Users that the host does not know keep the copy. */
  readonly keptForOthers: boolean;
}

/**
 * Creates copies for their users, corrects drift, adopts what lost its marks, and deletes after the last user. One key
 * is one copy.
 */
export class Copier<T extends KubeObject> {
  readonly sources: Sources<T>;
  readonly copies: Copies<T>;
  readonly #options: CopierOptions<T>;
  readonly #kinds: ReadonlyMap<string, CopiedKind<T>>;
  readonly #digests: ContentDigests<T>;
  readonly #executor: CopyExecutor<T>;
  readonly #loop: Controller<CopyKey, Observed<T>, Action<T>>;
  /** The source that each copy was last compared with: each waiting user asks for the drift. */
  readonly #drifts = new WeakMap<object, { readonly source: object; readonly drift: Drift }>();
  /** Epoch ms. */
  readonly #unusedSince = new Map<CopyKey, number>();
  /** Requests of an earlier leader, or of an earlier copier of the kinds, were sent before; epoch ms. */
  readonly #begunAt: number;

  constructor(options: CopierOptions<T>) {
    this.#options = options;
    const { identity, users, clock, log } = options;
    this.#begunAt = clock.now();
    const kinds = new Map(options.kinds.map((kind) => [kind.resource.kind, kind]));
    this.#kinds = kinds;
    this.#digests = new ContentDigests(kinds, identity);
    this.sources = new Sources<T>({
      host: options.host,
      hostId: identity.id,
      kinds,
      perNamespace: options.perNamespace ?? false,
      ...(options.indexes === undefined ? {} : { indexes: options.indexes }),
      selectors: options.selectors,
      onSource: (kind, object) => this.#onSource(kind, object),
      onState: (kind, namespace) => this.#onSources(kind, namespace),
      isNeeded: (kind, namespace) => users.anyNeeds(kind, namespace),
      clock,
      log,
    });
    this.copies = new Copies<T>({
      hostId: identity.id,
      kinds,
      transform: (kind, copy) => this.#digests.storedCopy(kind, copy),
      onCopy: (member, copy) => {
        this.enqueue({ member: member.name, ...copy });
        users.onCopy(member.name, copy);
      },
      onGone: (member, name, last) => {
        // The copier of whole objects deletes their copies.
        if (!this.#isOfWholeObject(name.kind, last)) this.#executor.onGone({ member: member.name, ...name }, last);
      },
      onRead: (member, kind) => {
        if (!this.#isRead(member, kind)) return;
        this.onMember(member);
        users.onRead?.(member);
      },
      onState: (member) => users.onMemberState?.(member),
      clock,
      log,
    });
    this.#executor = new CopyExecutor<T>({
      ...options,
      kinds,
      isSameContent: (kind, copy, source) => this.#digests.isSame(kind, copy, source),
      onChange: (ref) => users.onCopy(ref.member, ref),
    });
    this.#loop = new Controller<CopyKey, Observed<T>, Action<T>>(
      {
        name: options.name,
        observe: (key) => this.#observe(key),
        decide,
        execute: (action, context) => this.#executor.execute(action, context),
      },
      options,
    );
  }

  async stop(): Promise<void> {
    await Promise.all([this.sources.stop(), this.copies.stop()]);
    await this.#loop.stop();
  }

  onMembers(): void {
    const { registry } = this.#options;
    this.copies.follow(registry.members());
    this.#loop.enqueueKnown((key) => registry.member(copyRef(key).member) === undefined);
  }

  onMember(member: Member): void {
    if (![...this.#kinds.keys()].some((kind) => this.#isRead(member, kind))) return;
    for (const copy of this.copies.in(member)) this.enqueue({ member: member.name, ...copy });
    this.#loop.enqueueKnown((key) => copyRef(key).member === member.name);
    this.#options.users.onMember(member);
  }

  enqueue(ref: CopyRef): void {
    this.#loop.enqueue(copyKey(ref));
  }

  /** Enqueues the copies of an object in the members that have one, need one, or refused one. */
  enqueueConcerned(name: ObjectName): void {
    for (const member of this.#options.registry.members()) {
      const ref = { member: member.name, ...name };
      // A host has many objects without users, and many members.
      const concerns =
        this.#loop.knows(copyKey(ref)) ||
        this.copies.of(member, name.kind, name.namespace, name.name) !== undefined ||
        this.#options.users.use(member, ref, this.sourceFor(member, name)).demand === "needed";
      if (concerns) this.enqueue(ref);
    }
  }

  enqueueNamespace(member: Member, namespace: string): void {
    for (const kind of this.#kinds.keys()) {
      for (const copy of this.copies.inNamespace(member, kind, namespace))
        this.enqueue({ member: member.name, ...copy });
    }
  }

  nameOf(kind: string, object: Stored<T>): ObjectName {
    const { name, namespace = "" } = object.metadata;
    const copyName = this.#kinds.get(kind)?.copyName?.(object.metadata, this.#options.identity.id);
    return { kind, namespace, name: copyName ?? name };
  }

  sourceFor(member: Member, name: ObjectName): Source<T> {
    const source = this.sources.of(name);
    return this.#options.users.sourceFor?.(member, { member: member.name, ...name }, source) ?? source;
  }

  standing(member: Member, name: ObjectName): CopyStanding {
    const ref = { member: member.name, ...name };
    const key = copyKey(ref);
    const copy = this.copies.of(member, name.kind, name.namespace, name.name);
    const source = this.sourceFor(member, name);
    const object = source.state === "present" ? source.object : undefined;
    const refusal = this.#executor.refusals.of(key);
    const refusedUntil = this.#executor.refusals.until(key);
    const failing = this.#executor.failing(key);
    const held = object && this.#executor.held(key, object, copy);
    const drift = copy && object && this.#driftOf(name.kind, copy, object);
    const contested = this.#executor.contestedBy(ref, copy, drift === "none");
    const deletionRefusal = this.#executor.refusals.ofDeletion(key);
    const isDeleting = copy?.metadata.deletionTimestamp !== undefined;
    return {
      exists: copy !== undefined,
      stays: copy !== undefined && !isDeleting && !this.#executor.isLeaving(key, copy),
      ofSource: copy !== undefined && object !== undefined && standsFor(copy, object),
      ...defined({
        drift,
        refusal,
        refusedUntil,
        failing,
        held: held?.reason,
        contested,
        deletionRefusal: deletionRefusal?.message,
      }),
      keptForOthers: this.#executor.keptUntil(key) !== undefined,
    };
  }

  /** Asks the member whether it takes a copy that it does not have, and remembers a refusal. Rejects with KubeError. */
  async isTaken(
    member: Member,
    source: Stored<T>,
    kind: string,
    context: Parameters<CopyExecutor<T>["isTaken"]>[2],
  ): Promise<boolean> {
    const name = this.nameOf(kind, source);
    if (this.copies.of(member, kind, name.namespace, name.name) !== undefined) return true;
    const ref = { member: member.name, ...name };
    const isTaken = await this.#executor.isTaken(ref, source, context);
    if (!isTaken) this.enqueue(ref);
    return isTaken;
  }

  /** Returns how many copies are being written. */
  get writesInFlight(): number {
    return this.#loop.running;
  }

  /** Reports whether a write of the copy is under way, or not shown yet. */
  isChanging(member: Member, name: ObjectName): boolean {
    return this.#loop.isWriting(copyKey({ member: member.name, ...name }));
  }

  /**
   * Returns when no request can create the copy any more, so that a read of the member proves its absence; epoch ms. Undefined
   * if that is so. It changes without an event.
   */
  settlesAt(member: Member, name: ObjectName): number | undefined {
    const now = this.#options.clock.now();
    const key = copyKey({ member: member.name, ...name });
    // A write of a known copy creates none, and the watch may not show it for as long as it has a gap.
    const isKnown = this.copies.of(member, name.kind, name.namespace, name.name) !== undefined;
    if (isKnown ? this.#loop.isRunning(key) : this.#loop.isWriting(key)) return now + CHANGING_AGAIN_MS;
    const ofOthersEndAt = Math.max(this.#begunAt, member.reachableSince) + IN_FLIGHT_MS;
    const ownEndAt = this.#executor.createsEndAt(key) ?? 0;
    const at = Math.max(ofOthersEndAt, ownEndAt);
    if (now < at) return at;
    return this.copies.showsUntil(member, name.kind, at) ? undefined : now + CHANGING_AGAIN_MS;
  }

  /** Reports whether the member had refused anything. */
  reconsider(ref: CopyRef): boolean {
    const isRefused = this.#executor.reconsider(copyKey(ref));
    if (isRefused) this.enqueue(ref);
    return isRefused;
  }

  /** Reports whether the copies were read that those of the kind depend on. */
  #isRead(member: Member, kind: string): boolean {
    return this.copies.isRead(member, this.#options.areKindsIndependent === true ? [kind] : undefined);
  }

  #onSource(kind: string, object: Stored<T>): void {
    this.enqueueConcerned(this.nameOf(kind, object));
    this.#options.users.onSource(kind, object);
  }

  #onSources(kind: string, namespace: string): void {
    for (const member of this.#options.registry.members()) {
      const copies = namespace === "" ? this.copies.in(member) : this.copies.inNamespace(member, kind, namespace);
      for (const copy of copies) if (copy.kind === kind) this.enqueue({ member: member.name, ...copy });
    }
    this.#options.users.onSources(kind, namespace);
  }

  /** Reports whether the copier of whole objects keeps the copy, which pods use as it is. */
  #isOfWholeObject(kind: string, { metadata }: Stored<T>): boolean {
    return metadata.labels?.[WHOLE_KEY] !== undefined && this.#kinds.get(kind)?.applied === undefined;
  }

  #driftOf(kind: string, copy: Stored<T>, source: Stored<T>): Drift {
    if (this.#isOfWholeObject(kind, copy)) return "none";
    const known = this.#drifts.get(copy);
    if (known?.source === source) return known.drift;
    const record = this.#kinds.get(kind);
    if (record === undefined) return "none";
    const sameContent = this.#digests.isSame(kind, copy, source);
    const drift = driftOf(record, copy, { source, host: this.#options.identity, sameContent });
    this.#drifts.set(copy, { source, drift });
    return drift;
  }

  #observe(key: CopyKey): Observed<T> | undefined {
    const { registry, users } = this.#options;
    const ref = copyRef(key);
    const member = registry.member(ref.member);
    if (member === undefined) return this.#forget(key);
    if (!users.areKnown()) return undefined;
    const marked = this.copies.of(member, ref.kind, ref.namespace, ref.name);
    if (marked !== undefined && this.#isOfWholeObject(ref.kind, marked)) return this.#forget(key);
    const source = this.sourceFor(member, ref);
    const use = users.use(member, ref, source);
    // Creating one gives it back its marks, but none is created.
    const isOver = use.demand === "unused" || source.state === "missing";
    const copy = marked ?? (isOver ? this.copies.ownerless(member, ref) : undefined);
    const refusedUntil = this.#executor.refusals.until(key);
    if (copy === undefined && refusedUntil === undefined && (use.demand !== "needed" || source.state === "missing")) {
      return this.#forget(key);
    }
    if (use.demand === "needed") this.copies.need(member, ref.kind);
    const object = source.state === "present" ? source.object : undefined;
    const held = object && this.#executor.held(key, object, copy);
    const keptUntil = this.#executor.keptUntil(key);
    const contestedUntil = copy && this.#executor.contestedUntil(ref, copy);
    const deletionRefusal = this.#executor.refusals.ofDeletion(key);
    const onHost = copy === undefined ? undefined : this.sources.of(ref);
    return {
      ref,
      usable: member.reachable && member.read && this.#isRead(member, ref.kind),
      source,
      use,
      unusedSince: this.#noteUnused(key, use.demand === "unused"),
      ...(copy === undefined ? {} : { copy, leaving: this.#executor.isLeaving(key, copy) }),
      ...(copy === undefined || object === undefined ? {} : { drift: this.#driftOf(ref.kind, copy, object) }),
      ...defined({ held, contestedUntil, refusedUntil, keptUntil, deletionRefusedUntil: deletionRefusal?.until }),
      ...(onHost?.state === "present" ? { onHost: onHost.object } : {}),
    };
  }

  #noteUnused(key: CopyKey, isUnused: boolean): number {
    const now = this.#options.clock.now();
    if (!isUnused) {
      this.#unusedSince.delete(key);
      return now;
    }
    const since = this.#unusedSince.get(key) ?? now;
    this.#unusedSince.set(key, since);
    return since;
  }

  #forget(key: CopyKey): undefined {
    this.#unusedSince.delete(key);
    const ref = copyRef(key);
    // Users may have been told that the member refuses the copy, or that another manager deletes it.
    if (this.#executor.forget(key)) this.#options.users.onCopy(ref.member, ref);
  }
}
