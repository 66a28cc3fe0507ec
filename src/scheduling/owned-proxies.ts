import { byName } from "../api/json.ts";
import { DELETION_COST_ANNOTATION, OWN_DELETION_COST_ANNOTATION } from "../api/keys.ts";
import { type ObjectKey, objectKey, objectRef, type Pod, type Stored } from "../api/kubernetes.ts";
import type { Replicas } from "../placement/division.ts";
import { conditionOf, controllerOf, isBound, isLive } from "../pods/pod-state.ts";
import { memberOf } from "../pods/proxy.ts";
import { MemberCounts } from "./member-counts.ts";
import { type Updated, updatedOf } from "./workload.ts";

/** A live proxy: neither ended nor being deleted. */
export interface OwnedProxy {
  readonly uid: string;
  readonly key: ObjectKey;
  readonly owner: string;
  member?: string;
  bound: boolean;
  ready: boolean;
  /** Number of the owner's placed replicas when this one was placed, itself included. */
  ordinal?: number;
  /** Number of the owner's replicas in the member when this one was placed, itself included. */
  nth?: number;
  /** The owner reads deletion costs, and the author wrote none. */
  costed: boolean;
  cost?: number;
}

interface Owner {
  readonly uid: string;
  readonly family: Family | undefined;
  readonly proxies: Map<string, OwnedProxy>;
  readonly placed: MemberCounts;
  ready: number;
  /** Members of its replicas in the order of their deletion. Computed on demand. */
  leaving: readonly string[] | undefined;
}

interface Family {
  readonly key: string;
  readonly owners: Set<Owner>;
  /** Most replicas seen to change at once in this update. Used only if limits allow no exact division. */
  atOnce: number;
  /** Most replicas that one of them was seen to have in this update. */
  largest: number;
}

const NONE = new MemberCounts();

/** The live proxies of each owner, by member. Updated by each placement decision, too, so that a burst is counted. */
export class OwnedProxies {
  readonly #proxies = new Map<string, OwnedProxy>();
  readonly #owners = new Map<string, Owner>();
  /** Families by kind and name: a Deployment and a Rollout may share a name. */
  readonly #families = new Map<string, Family>();

  update(proxy: Stored<Pod>, costed = false): void {
    const { uid } = proxy.metadata;
    const owner = controllerOf(proxy)?.uid;
    if (owner === undefined || !isLive(proxy)) {
      this.remove(uid);
      return;
    }
    let own = this.#proxies.get(uid);
    const { member } = own ?? {};
    // A relist shows an adopted pod without the moment between its owners.
    if (own !== undefined && own.owner !== owner) {
      this.remove(uid);
      own = undefined;
    }
    if (own === undefined) {
      own = { uid, key: objectKey(proxy.metadata), owner, bound: false, ready: false, costed };
      this.#proxies.set(uid, own);
      this.#owner(owner, proxy).proxies.set(uid, own);
      this.#move(own, member);
    }
    own.costed = costed;
    if (!isBound(proxy)) return;
    const cost = ownCost(proxy);
    const ready = conditionOf(proxy, "Ready")?.status === "True";
    const known = this.#owners.get(owner);
    if (known !== undefined && (!own.bound || own.ready !== ready || own.cost !== cost)) known.leaving = undefined;
    if (known !== undefined && own.ready !== ready) known.ready += ready ? 1 : -1;
    own.bound = true;
    own.ready = ready;
    if (cost === undefined) delete own.cost;
    else own.cost = cost;
    this.#move(own, memberOf(proxy));
  }

  remove(uid: string): void {
    const own = this.#proxies.get(uid);
    if (own === undefined) return;
    this.#move(own, undefined);
    this.#proxies.delete(uid);
    const owner = this.#owners.get(own.owner);
    if (owner === undefined) return;
    owner.proxies.delete(uid);
    if (own.ready) owner.ready -= 1;
    if (owner.proxies.size > 0) return;
    this.#owners.delete(own.owner);
    const { family } = owner;
    if (family === undefined) return;
    family.owners.delete(owner);
    if (family.owners.size < 2) {
      family.atOnce = 0;
      family.largest = 0;
    }
    if (family.owners.size === 0) this.#families.delete(family.key);
  }

  /** Undefined: none any more. */
  place(uid: string, member: string | undefined): void {
    const own = this.#proxies.get(uid);
    if (own !== undefined && !own.bound) this.#move(own, member);
  }

  /** Ignores a proxy that has a member already. */
  noteDelegate(uid: string, member: string): void {
    if (this.#proxies.get(uid)?.member === undefined) this.place(uid, member);
  }

  get(uid: string): OwnedProxy | undefined {
    return this.#proxies.get(uid);
  }

  counts(owner: string): Pick<MemberCounts, "counts" | "size" | "without"> {
    return this.#owners.get(owner)?.placed ?? NONE;
  }

  placed(owner: string): Replicas {
    return byName(Object.fromEntries(this.counts(owner).counts));
  }

  total(owner: string): number {
    return this.counts(owner).size;
  }

  /** Counts replicas without a member, too. */
  unready(owner: string): number {
    const { proxies, ready = 0 } = this.#owners.get(owner) ?? {};
    return (proxies?.size ?? 0) - ready;
  }

  others(owner: string): string[] {
    const own = this.#owners.get(owner);
    const owners = own?.family?.owners;
    if (own === undefined || owners === undefined || owners.size === 1) return [];
    return [...owners].flatMap((other) => (other !== own && other.placed.size > 0 ? [other.uid] : []));
  }

  /** Counts the replicas that changed at once, as far as seen in the update. */
  atOnce(owner: string): number {
    const family = this.#owners.get(owner)?.family;
    if (family === undefined) return 0;
    let unready = 0;
    let all = 0;
    for (const { proxies, ready } of family.owners) {
      unready += proxies.size - ready;
      all += proxies.size;
      family.largest = Math.max(family.largest, proxies.size);
    }
    // Replicas beyond the largest ReplicaSet go at the end, with none created in between.
    family.atOnce = Math.max(family.atOnce, unready, all - family.largest);
    return family.atOnce;
  }

  leaving(owner: string): readonly string[] {
    const known = this.#owners.get(owner);
    if (known === undefined) return [];
    known.leaving ??= leavingOf(known);
    return known.leaving;
  }

  of(owner: string): readonly OwnedProxy[] {
    return [...(this.#owners.get(owner)?.proxies.values() ?? [])];
  }

  has(owner: string): boolean {
    return this.#owners.has(owner);
  }

  namespaceOf(owner: string): string | undefined {
    for (const { key } of this.#owners.get(owner)?.proxies.values() ?? []) return objectRef(key).namespace;
    return undefined;
  }

  owners(): string[] {
    return [...this.#owners.keys()];
  }

  #owner(uid: string, proxy: Stored<Pod>): Owner {
    let owner = this.#owners.get(uid);
    if (owner === undefined) {
      const family = this.#family(updatedOf(proxy));
      owner = { uid, family, proxies: new Map(), placed: new MemberCounts(), ready: 0, leaving: undefined };
      this.#owners.set(uid, owner);
      family?.owners.add(owner);
    }
    return owner;
  }

  #family(updated: Updated | undefined): Family | undefined {
    if (updated === undefined) return undefined;
    const key = `${updated.kind} ${updated.name}`;
    const family: Family = this.#families.get(key) ?? { key, owners: new Set(), atOnce: 0, largest: 0 };
    this.#families.set(key, family);
    return family;
  }

  #move(own: OwnedProxy, member: string | undefined): void {
    const owner = this.#owners.get(own.owner);
    if (own.member === member || owner === undefined) return;
    owner.leaving = undefined;
    const { placed } = owner;
    placed.move(own.uid, member);
    if (member === undefined) {
      delete own.member;
      return;
    }
    own.member = member;
    own.nth = placed.counts.get(member) ?? 0;
    own.ordinal = placed.size;
  }
}

/** The ReplicaSet controller's order: without a node, then not ready, then by deletion cost. */
function leavingOf({ proxies }: Owner): string[] {
  const stage = ({ bound, ready }: OwnedProxy): number => (bound ? (ready ? 2 : 1) : 0);
  const costOf = ({ cost, ordinal = 0 }: OwnedProxy): number => cost ?? -ordinal;
  return [...proxies.values()]
    .sort((a, b) => stage(a) - stage(b) || costOf(a) - costOf(b))
    .flatMap(({ member }) => member ?? []);
}

/** Returns undefined if another manager changed it. */
function ownCost({ metadata: { annotations = {} } }: Stored<Pod>): number | undefined {
  const text = annotations[OWN_DELETION_COST_ANNOTATION];
  return text === undefined || annotations[DELETION_COST_ANNOTATION] !== text ? undefined : Number(text);
}
