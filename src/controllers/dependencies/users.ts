import { virtualNodeName } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { ownerOf } from "../../pods/delegate.ts";
import {
  type Dependency,
  type DependencyKey,
  type DependencyKind,
  dependencyKey,
  kindIn,
  USES_INDEX,
  useOn,
} from "../../pods/dependencies.ts";
import { isBound } from "../../pods/phase.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { type CopyKey, copyKey } from "./model.ts";

/** A member, and which of its delegates use a dependency. */
interface MemberUsers {
  readonly name: string;
  readonly delegates: Pick<Member["delegates"], "using">;
}

/**
 * Who uses what: by the host's proxies, and by what delegates mount. A delegate alone gets nothing that its proxy does not
 * name, whatever somebody in the member has written into it.
 */
export class Users {
  readonly #proxies: () => ReadStore<Pod>;
  readonly #of: (pod: Pod) => readonly Dependency[];
  /** Pods on their way to a member, by proxy uid; and by copy. */
  readonly #placements = new Map<string, readonly CopyKey[]>();
  readonly #placed = new Map<CopyKey, Set<string>>();

  /** `of` returns the dependencies of a pod that count. */
  constructor(proxies: () => ReadStore<Pod>, of: (pod: Pod) => readonly Dependency[]) {
    this.#proxies = proxies;
    this.#of = of;
  }

  /** Whether a proxy of the namespace uses an object of the kind. */
  anyIn(kind: DependencyKind, namespace: string): boolean {
    return this.#proxies().countByIndex(USES_INDEX, kindIn(kind, namespace)) > 0;
  }

  /** What proxies of a namespace that have no node use of the kind, each once. */
  wantedIn(kind: DependencyKind, namespace: string): ReadonlySet<DependencyKey> {
    const waiting = this.#proxies()
      .byIndex(USES_INDEX, kindIn(kind, namespace))
      .filter((proxy) => !isBound(proxy));
    const used = waiting.flatMap((proxy) => this.#of(proxy)).filter((dependency) => dependency.kind === kind);
    return new Set(used.map(dependencyKey));
  }

  /** The proxies without a node that use it. */
  waitingFor(key: DependencyKey): ObjectKey[] {
    return this.#proxies()
      .byIndex(USES_INDEX, useOn("", key))
      .map(({ metadata }) => objectKey(metadata));
  }

  /** The pod is about to be given to the member. Returns the copies that are used more, or less, than before. */
  place(proxy: Stored<Pod>, member: string): readonly CopyKey[] {
    const { uid } = proxy.metadata;
    const before = this.forget(uid);
    const copies = this.#keysOf(proxy).map((key) => copyKey(member, key));
    this.#placements.set(uid, copies);
    for (const copy of copies) {
      const uids = this.#placed.get(copy) ?? new Set<string>();
      this.#placed.set(copy, uids.add(uid));
    }
    return [...before, ...copies];
  }

  /** The pod is where it is to be, or gone. Returns the copies that are used less than before. */
  forget(uid: string): readonly CopyKey[] {
    const copies = this.#placements.get(uid) ?? [];
    this.#placements.delete(uid);
    for (const copy of copies) {
      const uids = this.#placed.get(copy);
      uids?.delete(uid);
      if (uids?.size === 0) this.#placed.delete(copy);
    }
    return copies;
  }

  /** The copies in a member that pods on their way to it use. */
  placedIn(member: string): CopyKey[] {
    return [...this.#placed.keys()].filter((key) => key.startsWith(`${member}/`));
  }

  /** Whether a proxy that uses it was given to the member, or is about to be. */
  uses(member: MemberUsers, key: DependencyKey): boolean {
    if (this.#placed.has(copyKey(member.name, key))) return true;
    if (this.#proxies().countByIndex(USES_INDEX, useOn(virtualNodeName(member.name), key)) > 0) return true;
    return this.#heldIn(member, key).some((proxy) => this.#keysOf(proxy).includes(key));
  }

  /** Whether one of those cannot be without it. */
  requires(member: MemberUsers, key: DependencyKey): boolean {
    const needsIt = (proxy: Stored<Pod>): boolean =>
      this.#of(proxy).some((dependency) => !dependency.optional && dependencyKey(dependency) === key);
    const proxies = this.#proxies();
    const placed = [...(this.#placed.get(copyKey(member.name, key)) ?? [])];
    return (
      proxies.byIndex(USES_INDEX, useOn(virtualNodeName(member.name), key)).some(needsIt) ||
      proxies
        .byIndex(USES_INDEX, useOn("", key))
        .some((proxy) => placed.includes(proxy.metadata.uid) && needsIt(proxy)) ||
      this.#heldIn(member, key).some(needsIt)
    );
  }

  #keysOf(pod: Pod): DependencyKey[] {
    return this.#of(pod).map(dependencyKey);
  }

  /**
   * The proxies without a node whose delegates, of an earlier leader, mount it in the member. Of a proxy that has one, its node says where
   * it is: who shows a delegate of it elsewhere gets nothing by that.
   */
  #heldIn({ delegates }: MemberUsers, key: DependencyKey): Stored<Pod>[] {
    return delegates.using(key).flatMap((delegate) => {
      const proxy = this.#proxies().get(objectKey(delegate.metadata));
      if (proxy === undefined || proxy.metadata.uid !== ownerOf(delegate)?.uid) return [];
      return isBound(proxy) ? [] : [proxy];
    });
  }
}
