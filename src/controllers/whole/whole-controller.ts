import { defined } from "../../api/defined.ts";
import { type KubeObject, type ObjectKey, objectKey, objectRef, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { findByList } from "../../kube/list.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { Controller } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { LONG_RESTS, PacedResync } from "../../runtime/paced-resync.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import { Copier } from "../copying/copier.ts";
import type { CopyRef } from "../copying/model.ts";
import type { PodCopierOptions } from "../copying/pod-copier.ts";
import { Sources } from "../copying/sources.ts";
import type { ControllerEvents } from "../events.ts";
import type { RestoredHost } from "../restored-host.ts";
import type { WholeAdapter } from "./adapter.ts";
import { Executor } from "./execute.ts";
import { type Action, LOOK_AGAIN_MS, type Observed } from "./model.ts";

export interface WholeOptions extends Omit<PodCopierOptions, "proxies" | "events"> {
  /** Shows the host's objects of all shards, in the first of several. Undefined: `host` does, or nobody asks. */
  readonly everywhere: ClusterClient | undefined;
  readonly restoredHost: Pick<RestoredHost, "keeps" | "confirm">;
}

const MEMBER_INDEX = "member";
// A copy that the host has after all, or that an operator has to look at, is asked for again.
const RELEASE_KEPT_MS = 60_000;

/** Gives objects of one kind to members whole, and writes the status of their copies back. The copier writes the copies. */
export class WholeController<T extends KubeObject, Assignment, Shown, O extends Observed<T, Shown>> {
  readonly #adapter: WholeAdapter<T, Assignment, Shown, O>;
  readonly #options: WholeOptions;
  readonly #kind: string;
  readonly #copier: Copier<T>;
  /** The objects of all shards, where this is the first. */
  readonly #everywhere: Sources<T>;
  readonly #guard: WriteGuard<ObjectKey>;
  readonly #loop: Controller<ObjectKey, O, Action<T, Assignment, Shown>>;
  /** The status that was last sent of each object. Losing it costs one write. */
  readonly #sent = new Map<ObjectKey, NonNullable<Observed<T, Shown>["sent"]>>();
  /** Looks again at objects without a member, behind all others. Undefined where all members concern each object. */
  readonly #waiting: PacedResync<ObjectKey> | undefined;
  #isRetired = false;

  constructor(adapter: WholeAdapter<T, Assignment, Shown, O>, options: WholeOptions) {
    this.#adapter = adapter;
    this.#options = options;
    const { registry, everywhere, identity, clock, log } = options;
    const { kind } = adapter.writes;
    this.#kind = kind.resource.kind;
    this.#guard = new WriteGuard({ clock });
    const isOnRecord = adapter.membersOnRecord !== undefined;
    const indexes = isOnRecord ? { [MEMBER_INDEX]: (object: T) => orNone(adapter.membersOnRecord?.(object)) } : {};
    this.#copier = new Copier<T>({
      ...options,
      name: adapter.names.copies,
      kinds: [kind],
      clause: "",
      users: {
        areKnown: () => !this.#isRetired && this.isRead,
        use: ({ name }, _ref, source) => ({
          demand: source.state === "present" ? adapter.demandFor(source.object, name) : "kept",
        }),
        anyNeeds: () => true,
        sourceFor: (member, _ref, source) =>
          source.state === "present" ? adapter.sourceFor(source.object, member, this.#copier) : source,
        onCopy: (_member, name) => this.#loop.enqueue(objectKey(name)),
        onSource: (_kind, { metadata }) => {
          this.#loop.enqueue(objectKey(metadata));
          adapter.onChange?.();
        },
        onSources: () => {
          for (const member of registry.members()) this.#copier.onMember(member);
          this.#lookAgain();
        },
        onMember: ({ name }) => this.#enqueue(this.#concernedBy(name), [name]),
        onMemberState: ({ name }) => this.#enqueue(this.#concernedBy(name)),
      },
      indexes,
      beforeDelete: (member, ref, { copy, signal }) => this.#keptFor(member, ref, { copy, signal }),
    });
    this.#everywhere =
      everywhere === undefined
        ? this.#copier.sources
        : new Sources<T>({
            ...{ host: everywhere, hostId: identity.id, kinds: new Map([[this.#kind, kind]]), perNamespace: false },
            ...{ indexes, clock, log },
            onSource: () => adapter.onChange?.(),
            onState: () => adapter.onChange?.(),
            isNeeded: () => true,
          });
    this.#waiting = isOnRecord
      ? new PacedResync({
          clock,
          rests: LONG_RESTS,
          keys: () => this.#concernedBy("").map(({ metadata }) => objectKey(metadata)),
          reconcile: (keys, done) => this.#loop.enqueueBehind(keys, done),
        })
      : undefined;
    const executor = new Executor(adapter.writes, {
      ...options,
      guard: this.#guard,
      isTaken: async (object, member, { signal, log }) => {
        const source = adapter.sourceFor(object, member, this.#copier);
        return (
          source.state !== "present" || (await this.#copier.isTaken(member, source.object, this.#kind, { signal, log }))
        );
      },
      onStatus: (key, shown) => this.#sent.set(key, { at: clock.now(), shown }),
      onReport: () => this.#waiting?.request(LOOK_AGAIN_MS),
    });
    this.#loop = new Controller<ObjectKey, O, Action<T, Assignment, Shown>>(
      {
        name: adapter.names.objects,
        observe: (key) => this.#observe(key),
        identify: () => adapter.identify?.() ?? {},
        decide: (observed, now, wall) => adapter.decide(observed, now, wall),
        execute: (action, context) => executor.execute(action, context),
      },
      options,
    );
  }

  start(): void {
    this.#copier.sources.need(this.#kind, "");
    this.#everywhere.need(this.#kind, "");
    this.#copier.onMembers();
  }

  async stop(): Promise<void> {
    this.#waiting?.stop();
    // A copier that stops looks as if no member were read.
    await this.#loop.stop();
    await this.#copier.stop();
    await this.#everywhere.stop();
  }

  /** Hears of members and defaults from now on. Who runs many of these calls `onMembers` and its neighbours instead. */
  follow(events: Events<ControllerEvents>): void {
    events.on("cluster", (name) => this.onMembers(name));
    events.on("connection", (member) => this.onConnection(member));
    events.on("nodeSpec", () => this.#waiting?.request(0));
    events.on("defaultsChanged", () => this.onDefaults());
  }

  /** Releases all objects, and leaves their copies as they are. */
  retire(): void {
    this.#isRetired = true;
    this.#enqueue(this.objects());
  }

  /** Overrides may fit a member whose labels changed. */
  onMembers(name: string): void {
    this.#copier.onMembers();
    if (this.#waiting !== undefined) this.#enqueue(this.#concernedBy(name), [name]);
    this.#lookAgain({ withCopies: true });
  }

  onConnection(member: Member): void {
    if (member.reachable) this.#copier.onMember(member);
    this.#lookAgain();
  }

  /** The namespaces' annotations, or the defaults of all, have changed. */
  onDefaults(): void {
    this.#adapter.reset();
    this.#lookAgain({ withCopies: true });
  }

  objects(): readonly Stored<T>[] {
    return this.#copier.sources.all(this.#kind);
  }

  /** Returns the objects of all shards. */
  objectsEverywhere(): readonly Stored<T>[] {
    return this.#everywhere.all(this.#kind);
  }

  /** Returns the objects of all shards that the member of that name is to have. */
  inMember(cluster: string): readonly Stored<T>[] {
    return this.#everywhere.byIndex(this.#kind, "", { index: MEMBER_INDEX, value: cluster });
  }

  /** Reports whether the host's objects were read. */
  get isRead(): boolean {
    return this.#copier.sources.isRead(this.#kind, "");
  }

  /** Returns why objects of the kind cannot be read on the host, or in a member. */
  failure(): string | undefined {
    const here = this.#copier.sources.failure(this.#kind, "");
    if (here !== undefined) return here;
    const failures = this.#copier.copies.failures(this.#options.registry.members());
    return failures.length === 0 ? undefined : failures.join("; ");
  }

  /** Returns the members that answer, and whose copies are being read for the first time. */
  membersBeingRead(): readonly string[] {
    return this.#copier.copies.beingRead(this.#options.registry.members());
  }

  /** Looks again at objects that any change may concern: those without a member where members are on record, or all. */
  #lookAgain({ withCopies = false }: { readonly withCopies?: boolean } = {}): void {
    if (this.#waiting !== undefined) {
      this.#waiting.request(0);
      return;
    }
    const members = withCopies ? this.#options.registry.members().map(({ name }) => name) : [];
    this.#enqueue(this.objects(), members);
  }

  #enqueue(objects: readonly Stored<T>[], members: readonly string[] = []): void {
    for (const object of objects) {
      const name = this.#copier.nameOf(this.#kind, object);
      for (const member of members) this.#copier.enqueue({ member, ...name });
      this.#loop.enqueue(objectKey(object.metadata));
    }
    this.#adapter.onChange?.();
  }

  #concernedBy(member: string): readonly Stored<T>[] {
    if (this.#waiting === undefined) return this.objects();
    return this.#copier.sources.byIndex(this.#kind, "", { index: MEMBER_INDEX, value: member });
  }

  #observe(key: ObjectKey): O | undefined {
    const { name, namespace = "" } = objectRef(key);
    const source = this.#copier.sources.of({ kind: this.#kind, namespace, name });
    if (source.state !== "present") {
      if (source.state === "missing") {
        this.#guard.forget(key);
        this.#sent.delete(key);
        this.#adapter.forget?.(key);
      }
      return undefined;
    }
    const sent = this.#sent.get(key);
    const held = this.#guard.of(key);
    const known = { object: source.object, isRetired: this.#isRetired, ...defined({ sent, held }) };
    return this.#adapter.observe(known, this.#copier);
  }

  /** Asks the host whether the copy is still wanted. Returns for how long it stays; ms. */
  async #keptFor(
    member: Member,
    ref: CopyRef,
    { copy, signal }: { readonly copy: Stored<T>; readonly signal: AbortSignal },
  ): Promise<number | undefined> {
    const { host, restoredHost } = this.#options;
    const { resource } = this.#adapter.writes.kind;
    const found = await findByList(host, resource, ref, signal);
    const object = found?.metadata.uid === ownerOf(copy)?.uid ? found : undefined;
    if (object !== undefined && this.#adapter.isWantedIn(object, member)) {
      const isReplaced = this.#adapter.replacesCopies && this.#copier.standing(member, ref).drift === "immutable";
      return isReplaced ? undefined : RELEASE_KEPT_MS;
    }
    const isTakenBack = this.#adapter.isTakenBack(found, object !== undefined);
    if (!isTakenBack && restoredHost.keeps(member.name, `a ${resource.kind}`, copy.metadata)) return RELEASE_KEPT_MS;
    if (found === undefined) await restoredHost.confirm(member.name, resource.plural, signal);
    const unwanted = { host, member, copy, signal, ...defined({ object }) };
    return (await this.#adapter.leave?.(unwanted)) === true ? RELEASE_KEPT_MS : undefined;
  }
}

function orNone(members: readonly string[] = []): readonly string[] {
  return members.length === 0 ? [""] : members;
}
