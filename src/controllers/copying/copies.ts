import { COPY_LABEL, COPY_LABEL_VALUE, HOST_LABEL } from "../../api/keys.ts";
import { type KubeObject, objectKey, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { MemberWatches } from "../../clusters/member-watches.ts";
import { hasLostOwner, isLabelled } from "../../copies/copy-metadata.ts";
import { type CopiedKind, isDerived } from "../../copies/kind.ts";
import { heapBytesOfObject } from "../../kube/json.ts";
import { cutAt, LONGEST_PROBLEM } from "../../kube/messages.ts";
import { ownerOf } from "../../pods/delegate.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Reflector, type Rest } from "../../runtime/reflector.ts";
import type { ReadStore } from "../../runtime/store.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ObjectName } from "./model.ts";

/** The part of a kind's record that the watch of its copies needs. */
export type WatchedKind<T extends KubeObject> = Pick<
  CopiedKind<T>,
  "resource" | "copyName" | "knownByLabels" | "copies" | "withoutContent" | "applied"
>;

export interface CopiesOptions<T extends KubeObject> {
  readonly hostId: string;
  readonly kinds: ReadonlyMap<string, WatchedKind<T>>;
  /** Shrinks copies before they are stored. Default: they are stored as they are. */
  readonly transform?: (kind: string, object: Stored<T>) => Stored<T>;
  readonly onCopy: (member: Member, copy: ObjectName) => void;
  /** Called before `onCopy` when a copy is gone, or lost its labels. */
  readonly onGone?: (member: Member, copy: ObjectName, last: Stored<T>) => void;
  /** Called for each kind: `read` may have another answer. */
  readonly onRead: (member: Member, kind: string) => void;
  /** `isCurrent` may have another answer. */
  readonly onState?: (member: Member) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

// Large objects may have a megabyte each, and all responses of a member share one budget.
const LARGE_PAGE_SIZE = 20;
const NAMESPACE_INDEX = "namespace";
// The RBAC cache of a starting API server denies rights that it grants some seconds later.
const DENIED_AFTER_MS = 10_000;

export class Copies<T extends KubeObject> {
  readonly #options: CopiesOptions<T>;
  readonly #watches: ReadonlyMap<string, MemberWatches<Reflector<T>>>;

  constructor(options: CopiesOptions<T>) {
    this.#options = options;
    this.#watches = new Map(
      [...options.kinds].map(([kind, record]) => [
        kind,
        new MemberWatches((member, rest) => this.#reflector(member, { kind, record, rest })),
      ]),
    );
  }

  follow(members: readonly Member[]): void {
    for (const watches of this.#watches.values()) watches.follow(members);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#watches.values()].map((watches) => watches.stop()));
  }

  /** Reports whether the member's copies were listed since it was connected. Default: of all kinds. */
  isRead(member: Member, kinds: Iterable<string> = this.#watches.keys()): boolean {
    for (const kind of kinds) if (this.#store(member, kind)?.synced !== true) return false;
    return true;
  }

  /** Reports the same to somebody who waits for those lists, and hurries them. */
  read(member: Member, kinds: readonly string[] = [...this.#watches.keys()]): boolean {
    const isRead = this.isRead(member, kinds);
    if (!isRead) for (const kind of kinds) this.#watches.get(kind)?.of(member)?.hurry();
    return isRead;
  }

  /** Has the member's copies of a kind watched, since one is about to be created: whole objects' are left to the copiers for pods, too. */
  need(member: Member, kind: string): void {
    const plural = this.#options.kinds.get(kind)?.resource.plural;
    for (const watch of member.watches) if (watch.plural === plural) watch.need?.();
  }

  /** Reports whether the stores follow the member's copies, or have none that could change. */
  isCurrent(member: Member): boolean {
    return this.#of(member).every((reflector) => reflector?.state === "watching" || reflector?.state === "resting");
  }

  /** Reports whether the store shows what was created until then; epoch ms. If it does not yet, it will soon. */
  showsUntil(member: Member, kind: string, at: number): boolean {
    const reflector = this.#watches.get(kind)?.of(member);
    if (reflector?.state !== "resting" || (reflector.lastListedAt ?? 0) >= at) return true;
    reflector.need();
    return false;
  }

  /** Reports to somebody who waits whether the first list of the member's copies is pending, and nothing indicates that it will fail. */
  isBeingRead(member: Member): boolean {
    return !this.read(member) && this.failing(member) === undefined;
  }

  /** Returns why the copies are not followed, until they are: also while the next attempt is under way. */
  failing(member: Member): string | undefined {
    return this.#of(member).find((reflector) => reflector?.failing !== undefined)?.failing?.reason;
  }

  /** Returns why the copies of members that answer cannot be read. */
  failures(members: readonly Member[]): readonly string[] {
    return members.flatMap((member) => {
      const reason = member.reachable ? this.failing(member) : undefined;
      return reason === undefined ? [] : [cutAt(`${member.name}: ${reason}`, LONGEST_PROBLEM)];
    });
  }

  /** Returns the names of members that answer, and whose copies are being read for the first time. */
  beingRead(members: readonly Member[]): readonly string[] {
    return members
      .filter((member) => member.reachable && !this.isRead(member) && this.failing(member) === undefined)
      .map(({ name }) => name);
  }

  /** Reports whether the member has never let this connection list its copies, for want of the right. */
  isDenied(member: Member): boolean {
    const now = this.#options.clock.now();
    return this.#of(member).some((reflector) => {
      const failing = reflector?.store.synced === true ? undefined : reflector?.failing;
      return failing?.code === "Forbidden" && now - failing.since >= DENIED_AFTER_MS;
    });
  }

  of(member: Member, kind: string, namespace: string, name: string): Stored<T> | undefined {
    const found = this.#store(member, kind)?.get(objectKey({ namespace, name }));
    const record = this.#options.kinds.get(kind);
    if (found === undefined || record === undefined) return undefined;
    return isCopyOfKind(found, record, this.#options.hostId) ? found : undefined;
  }

  /** Returns a whole object's copy that lost its owner annotation. */
  ownerless(member: Member, { kind, namespace, name }: ObjectName): Stored<T> | undefined {
    const found = this.#store(member, kind)?.get(objectKey({ namespace, name }));
    if (found === undefined || !hasLostOwner(found, this.#options.hostId)) return undefined;
    return this.#options.kinds.get(kind)?.applied?.wasMade(found) === true ? found : undefined;
  }

  in(member: Member): ObjectName[] {
    return [...this.#watches.keys()].flatMap((kind) => {
      const copies = this.#store(member, kind)?.list() ?? [];
      return copies.map(({ metadata }) => nameOf(kind, metadata));
    });
  }

  inNamespace(member: Member, kind: string, namespace: string): ObjectName[] {
    const copies = this.#store(member, kind)?.byIndex(NAMESPACE_INDEX, namespace) ?? [];
    return copies.map(({ metadata }) => nameOf(kind, metadata));
  }

  #of(member: Member): (Reflector<T> | undefined)[] {
    return [...this.#watches.values()].map((watches) => watches.of(member));
  }

  #store(member: Member, kind: string): ReadStore<T> | undefined {
    return this.#watches.get(kind)?.of(member)?.store;
  }

  #reflector(
    member: Member,
    { kind, record, rest }: { readonly kind: string; readonly record: WatchedKind<T>; readonly rest: Rest },
  ): Reflector<T> {
    const { resource, copies, withoutContent } = record;
    const { hostId, transform, onCopy, onGone, onRead, onState, clock } = this.#options;
    const labelSelector = [
      `${HOST_LABEL}=${hostId}`,
      `${COPY_LABEL}=${COPY_LABEL_VALUE}`,
      ...(copies?.labelSelector === undefined ? [] : [copies.labelSelector]),
    ].join(",");
    const reflector = new Reflector<T>({
      client: member.client,
      resource,
      ...copies,
      labelSelector,
      ...(transform === undefined ? {} : { transform: (object) => transform(kind, object) }),
      // The transform drops the content of large objects.
      ...(withoutContent === undefined ? {} : { pageSize: LARGE_PAGE_SIZE, sizeOf: heapBytesOfObject }),
      budget: member.memory,
      rest,
      indexes: { [NAMESPACE_INDEX]: ({ metadata: { namespace = "" } }) => [namespace] },
      clock,
      log: this.#options.log.child({ member: member.name }),
      onEvent: ({ type, object }) => {
        const name = nameOf(kind, object.metadata);
        if (type === "deleted" && isCopyOfKind(object, record, hostId)) onGone?.(member, name, object);
        onCopy(member, name);
      },
      onState: () => onState?.(member),
    });
    void reflector.whenSynced().then(() => onRead(member, kind));
    return reflector;
  }
}

/** Controllers carry labels and annotations of a copy to what they derive from it under another name. */
function isCopyOfKind<T extends KubeObject>(object: Stored<T>, kind: WatchedKind<T>, hostId: string): boolean {
  if (!isLabelled(object, hostId)) return false;
  if (ownerOf(object) === undefined) return kind.knownByLabels?.(object.metadata.name, hostId) === true;
  return !isDerived(object, kind, hostId);
}

function nameOf(kind: string, { namespace = "", name }: { namespace?: string; name: string }): ObjectName {
  return { kind, namespace, name };
}
