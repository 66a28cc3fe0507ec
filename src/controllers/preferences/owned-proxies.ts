import { DELETION_COST_ANNOTATION, OWN_DELETION_COST_ANNOTATION } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Replicas } from "../../placement/division.ts";
import { conditionOf, controllerOf, isBound, isLive } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { type Updated, updatedOf } from "./workload.ts";

/** One live proxy: neither ended nor being deleted. */
export interface OwnedProxy {
  readonly uid: string;
  readonly key: ObjectKey;
  readonly owner: string;
  /** The member that has it or is about to. */
  member?: string;
  bound: boolean;
  ready: boolean;
  /** How many its owner had placed when it was given its member, itself included. */
  ordinal?: number;
  /** How many its member had of the owner's when it was given this one, itself included. */
  nth?: number;
  /** Its owner reads deletion costs, and its author has written none. */
  costed: boolean;
  /** What its deletion costs, as Legation has written it. */
  cost?: number;
}

interface Owner {
  readonly uid: string;
  /** What it belongs to with others. */
  readonly family: Family | undefined;
  readonly proxies: Map<string, OwnedProxy>;
  readonly placed: Record<string, number>;
  total: number;
  ready: number;
  /** Members of what it has, as it will go; reckoned when it is asked for. */
  leaving: readonly string[] | undefined;
}

/** The ReplicaSets of a Deployment or Rollout. */
interface Family {
  readonly key: string;
  readonly owners: Set<Owner>;
  /** The most replicas seen to come and go at once in this update. Used only where limits allow no exact division. */
  atOnce: number;
  /** The most replicas that one of them was seen to have in this update. */
  largest: number;
}

const NONE: Replicas = {};

/**
 * Where the live proxies of each owner are. Kept by the events of proxies and by each placement as it is decided, so that
 * a burst is counted and placing one costs the same however many there are.
 */
export class OwnedProxies {
  readonly #proxies = new Map<string, OwnedProxy>();
  readonly #owners = new Map<string, Owner>();
  /** By kind and name of the Deployment or Rollout: one of each may have the same name. */
  readonly #families = new Map<string, Family>();

  /** A proxy is as the host shows it. */
  update(proxy: Stored<Pod>, costed = false): void {
    const { uid } = proxy.metadata;
    const owner = controllerOf(proxy)?.uid;
    if (owner === undefined || !isLive(proxy)) {
      this.remove(uid);
      return;
    }
    let own = this.#proxies.get(uid);
    if (own === undefined) {
      own = { uid, key: objectKey(proxy.metadata), owner, bound: false, ready: false, costed };
      this.#proxies.set(uid, own);
      this.#owner(owner, proxy).proxies.set(uid, own);
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

  /** A proxy that is not bound has its delegate, or a promise of room, in this member; undefined: nowhere any more. */
  place(uid: string, member: string | undefined): void {
    const own = this.#proxies.get(uid);
    if (own !== undefined && !own.bound) this.#move(own, member);
  }

  /** A member shows the proxy's delegate. Passed over when the proxy has a member already. */
  held(uid: string, member: string): void {
    if (this.#proxies.get(uid)?.member === undefined) this.place(uid, member);
  }

  get(uid: string): OwnedProxy | undefined {
    return this.#proxies.get(uid);
  }

  /** Replicas of the owner by member. Shared and live: copy it to keep it. */
  placed(owner: string): Replicas {
    return this.#owners.get(owner)?.placed ?? NONE;
  }

  /** How many the owner has placed. */
  total(owner: string): number {
    return this.#owners.get(owner)?.total ?? 0;
  }

  /** How many of the owner's are not ready, or have no member yet. */
  unready(owner: string): number {
    const { proxies, ready = 0 } = this.#owners.get(owner) ?? {};
    return (proxies?.size ?? 0) - ready;
  }

  /** Other owners of the same Deployment or Rollout that have placed some: its other ReplicaSets. */
  others(owner: string): string[] {
    const own = this.#owners.get(owner);
    const owners = own?.family?.owners;
    if (own === undefined || owners === undefined || owners.size === 1) return [];
    return [...owners].flatMap((other) => (other !== own && other.total > 0 ? [other.uid] : []));
  }

  /** How many replicas of the owner's Deployment or Rollout come and go at once in its update, as far as it has shown. */
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
    // What there is beyond the largest ReplicaSet goes at the end, and nothing comes in between.
    family.atOnce = Math.max(family.atOnce, unready, all - family.largest);
    return family.atOnce;
  }

  /** Members of the owner's placed proxies, in the order in which these go. Shared: it is good until the next event. */
  leaving(owner: string): readonly string[] {
    const known = this.#owners.get(owner);
    if (known === undefined) return [];
    known.leaving ??= leavingOf(known);
    return known.leaving;
  }

  /** The owner's live proxies. */
  of(owner: string): readonly OwnedProxy[] {
    return [...(this.#owners.get(owner)?.proxies.values() ?? [])];
  }

  has(owner: string): boolean {
    return this.#owners.has(owner);
  }

  owners(): string[] {
    return [...this.#owners.keys()];
  }

  #owner(uid: string, proxy: Stored<Pod>): Owner {
    let owner = this.#owners.get(uid);
    if (owner === undefined) {
      const family = this.#family(updatedOf(proxy));
      owner = { uid, family, proxies: new Map(), placed: {}, total: 0, ready: 0, leaving: undefined };
      this.#owners.set(uid, owner);
      family?.owners.add(owner);
    }
    return owner;
  }

  #family(updated: Updated | undefined): Family | undefined {
    if (updated === undefined) return undefined;
    const key = `${updated.kind} ${updated.name}`;
    let family = this.#families.get(key);
    if (family === undefined) {
      family = { key, owners: new Set(), atOnce: 0, largest: 0 };
      this.#families.set(key, family);
    }
    return family;
  }

  #move(own: OwnedProxy, member: string | undefined): void {
    const owner = this.#owners.get(own.owner);
    if (own.member === member || owner === undefined) return;
    owner.leaving = undefined;
    const { placed } = owner;
    if (own.member !== undefined) {
      owner.total -= 1;
      const left = (placed[own.member] ?? 0) - 1;
      if (left > 0) placed[own.member] = left;
      else delete placed[own.member];
    }
    if (member === undefined) {
      delete own.member;
      return;
    }
    own.member = member;
    own.nth = (placed[member] ?? 0) + 1;
    placed[member] = own.nth;
    owner.total += 1;
    own.ordinal = owner.total;
  }
}

/** As a ReplicaSet ends its pods: those without a node first, then those that are not ready, then by deletion cost. */
function leavingOf({ proxies }: Owner): string[] {
  const stage = ({ bound, ready }: OwnedProxy): number => (bound ? (ready ? 2 : 1) : 0);
  const costOf = ({ cost, ordinal = 0 }: OwnedProxy): number => cost ?? -ordinal;
  return [...proxies.values()]
    .sort((a, b) => stage(a) - stage(b) || costOf(a) - costOf(b))
    .flatMap(({ member }) => member ?? []);
}

/** The deletion cost that Legation wrote; undefined when there is none, or somebody has written another one. */
function ownCost({ metadata: { annotations = {} } }: Stored<Pod>): number | undefined {
  const text = annotations[OWN_DELETION_COST_ANNOTATION];
  return text === undefined || annotations[DELETION_COST_ANNOTATION] !== text ? undefined : Number(text);
}
