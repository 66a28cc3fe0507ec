import { HOST_LABEL, virtualNodeName } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Shard } from "../../api/shards.ts";
import type { Member } from "../../clusters/member.ts";
import type { PodIndex } from "../../clusters/member-delegates.ts";
import {
  type Dependency,
  type DependencyKey,
  type DependencyRef,
  dependencyKey,
  dependencyKeys,
  dependencyRef,
} from "../../copies/named-by-pods.ts";
import { listPages } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { isBound, isTerminal } from "../../pods/pod-state.ts";
import { ReverseIndex } from "../../runtime/reverse-index.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { type CopyKey, type CopyRef, copyKey, copyRef } from "../copying/model.ts";

interface MemberUsers {
  readonly name: string;
  readonly delegates: Pick<Member["delegates"], "unfinished" | "countUnfinished">;
}

/** Index of the pods that use a dependency. A delegate gets nothing that its proxy does not name. */
export class Users {
  static #made = 0;
  readonly #proxies: ReadStore<Pod>;
  readonly #of: (pod: Pod) => readonly Dependency[];
  /** Proxies by kinds in namespaces, and by objects on nodes. */
  readonly #ofProxies: PodIndex;
  readonly #ofDelegates: PodIndex;
  /** The copies that pods on their way need, by the pods' uids. */
  readonly #placed = new ReverseIndex<string, CopyKey>();
  /** Epoch ms, by uid. */
  readonly #placedAt = new Map<string, number>();

  /** Indexes stay until `stop`. */
  constructor(proxies: ReadStore<Pod>, of: (pod: Pod) => readonly Dependency[]) {
    this.#proxies = proxies;
    this.#of = of;
    Users.#made += 1;
    const name = `uses/${Users.#made}`;
    this.#ofProxies = { name, valuesOf: (proxy) => this.usesOf(proxy) };
    this.#ofDelegates = { name, valuesOf: (delegate) => this.#keysOf(delegate) };
    proxies.addIndex(this.#ofProxies.name, this.#ofProxies.valuesOf);
  }

  stop(members: readonly { readonly delegates: Pick<Member["delegates"], "removeIndex"> }[]): void {
    this.#proxies.removeIndex(this.#ofProxies.name);
    for (const { delegates } of members) delegates.removeIndex(this.#ofDelegates.name);
  }

  /** Returns kinds by namespace, and objects by node. A terminal pod mounts nothing. */
  usesOf(proxy: Pod): string[] {
    const dependencies = this.#of(proxy);
    if (dependencies.length === 0 || isTerminal(proxy)) return [];
    const node = proxy.spec?.nodeName ?? "";
    const kinds = new Set(dependencies.map(({ kind, namespace }) => kindIn(kind, namespace)));
    return [...kinds, ...dependencies.map((dependency) => useOn(node, dependencyKey(dependency)))];
  }

  anyIn(kind: string, namespace: string): boolean {
    return this.#proxies.countByIndex(this.#ofProxies.name, kindIn(kind, namespace)) > 0;
  }

  /** Returns the dependencies of a kind that proxies of the namespace wait for, each once. */
  wantedIn(kind: string, namespace: string): readonly DependencyRef[] {
    const waiting = this.#proxies
      .byIndex(this.#ofProxies.name, kindIn(kind, namespace))
      .filter((proxy) => !isBound(proxy));
    const used = waiting.flatMap((proxy) => this.#of(proxy)).filter((dependency) => dependency.kind === kind);
    return [...new Map(used.map((dependency) => [dependencyKey(dependency), dependency])).values()];
  }

  /** Reports whether an unfinished proxy that is bound to the member uses it. */
  isBoundIn(member: string, key: DependencyKey): boolean {
    return this.#proxies.countByIndex(this.#ofProxies.name, useOn(virtualNodeName(member), key)) > 0;
  }

  /** Reports whether a pod is bound to the member with it, or another one has a delegate there or was given to it since then. */
  isUsedBy(
    member: MemberUsers,
    key: DependencyKey,
    { isOther, since }: { readonly isOther: (proxy: Stored<Pod>) => boolean; readonly since: number },
  ): boolean {
    if (this.isBoundIn(member.name, key)) return true;
    const placed = new Set(this.#placed.of(keyIn(member.name, key)));
    const isPlacedSince = ({ metadata: { uid } }: Stored<Pod>): boolean =>
      placed.has(uid) && (this.#placedAt.get(uid) ?? 0) >= since;
    const waiting = this.#proxies.byIndex(this.#ofProxies.name, useOn("", key));
    if (waiting.some((proxy) => isPlacedSince(proxy) && isOther(proxy))) return true;
    return this.#heldIn(member, key).some((proxy) => this.#keysOf(proxy).includes(key) && isOther(proxy));
  }

  /** Reports whether an unfinished proxy names it, wherever that is bound. */
  isNamed(ref: DependencyRef): boolean {
    const key = dependencyKey(ref);
    const proxies = this.#proxies.byIndex(this.#ofProxies.name, kindIn(ref.kind, ref.namespace));
    return proxies.some((proxy) => this.#keysOf(proxy).includes(key));
  }

  /** Returns what unfinished proxies name, each once. */
  named(): readonly DependencyRef[] {
    const named = this.#proxies
      .list()
      .filter((proxy) => !isTerminal(proxy))
      .flatMap((proxy) => this.#of(proxy));
    return [...new Map(named.map((dependency) => [dependencyKey(dependency), dependency])).values()];
  }

  waitingFor(key: DependencyKey): ObjectKey[] {
    return this.#proxies.byIndex(this.#ofProxies.name, useOn("", key)).map(({ metadata }) => objectKey(metadata));
  }

  place(proxy: Stored<Pod>, member: string, now: number): readonly CopyRef[] {
    const { uid } = proxy.metadata;
    const before = this.forget(uid);
    const copies = this.#of(proxy).map((dependency) => copyKey({ member, ...dependency }));
    this.#placed.set(uid, copies);
    this.#placedAt.set(uid, now);
    return [...before, ...copies.map(copyRef)];
  }

  forget(uid: string): readonly CopyRef[] {
    this.#placedAt.delete(uid);
    return this.#placed.delete(uid).map(copyRef);
  }

  placedIn(member: string): CopyRef[] {
    return [...this.#placed.values()].map(copyRef).filter((ref) => ref.member === member);
  }

  /** Reports whether a proxy that uses it was given to the member, or is about to be. */
  uses(member: MemberUsers, key: DependencyKey): boolean {
    if (this.#placed.has(keyIn(member.name, key))) return true;
    if (this.isBoundIn(member.name, key)) return true;
    return this.#heldIn(member, key).some((proxy) => this.#keysOf(proxy).includes(key));
  }

  isMounted({ delegates }: MemberUsers, key: DependencyKey): boolean {
    return delegates.countUnfinished(this.#ofDelegates, key) > 0;
  }

  /** Reports whether one of those cannot start without it. */
  requires(member: MemberUsers, key: DependencyKey): boolean {
    const needsIt = (proxy: Stored<Pod>): boolean =>
      this.#of(proxy).some((dependency) => !dependency.optional && dependencyKey(dependency) === key);
    const proxies = this.#proxies;
    const placed = [...this.#placed.of(keyIn(member.name, key))];
    return (
      proxies.byIndex(this.#ofProxies.name, useOn(virtualNodeName(member.name), key)).some(needsIt) ||
      proxies
        .byIndex(this.#ofProxies.name, useOn("", key))
        .some((proxy) => placed.includes(proxy.metadata.uid) && needsIt(proxy)) ||
      this.#heldIn(member, key).some(needsIt)
    );
  }

  #keysOf(pod: Pod): DependencyKey[] {
    return this.#of(pod).map(dependencyKey);
  }

  /** Finds delegates of an earlier leader. A bound proxy's node says where it is: a delegate elsewhere gets nothing. */
  #heldIn({ delegates }: MemberUsers, key: DependencyKey): Stored<Pod>[] {
    return delegates.unfinished(this.#ofDelegates, key).flatMap((delegate) => {
      const proxy = this.#proxies.get(objectKey(delegate.metadata));
      if (proxy === undefined || proxy.metadata.uid !== ownerOf(delegate)?.uid) return [];
      return isBound(proxy) ? [] : [proxy];
    });
  }
}

function kindIn(kind: string, namespace: string): string {
  return `${kind}/${namespace}`;
}

/** The node is empty for unbound proxies. */
function useOn(node: string, key: DependencyKey): string {
  return `${node}|${key}`;
}

function keyIn(member: string, key: DependencyKey): CopyKey {
  return copyKey({ member, ...dependencyRef(key) });
}

/** Reports whether delegates of other hosts or shards use an object that none of this shard does. Rejects with KubeError. */
export async function isUsedByOthers(
  { everywhere }: Pick<Member, "everywhere">,
  ref: DependencyRef,
  { hostId, shard }: { readonly hostId: string; readonly shard: Shard },
  signal: AbortSignal,
): Promise<boolean> {
  const key = dependencyKey(ref);
  const options = {
    labelSelector: shard.count === 1 ? `${HOST_LABEL},${HOST_LABEL}!=${hostId}` : HOST_LABEL,
    fieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
    signal,
  };
  for await (const page of listPages(everywhere, pods, options)) {
    if (page.some((pod) => dependencyKeys(pod).includes(key))) return true;
  }
  return false;
}
