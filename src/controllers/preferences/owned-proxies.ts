import { DELETION_COST_ANNOTATION, OWN_DELETION_COST_ANNOTATION, VIRTUAL_NODE_PREFIX } from "../../api/keys.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Replicas } from "../../placement/division.ts";
import { controllerOf, isBound, isDeleting, isTerminal } from "../../pods/phase.ts";

/** One live proxy: neither ended nor being deleted. */
export interface OwnedProxy {
  readonly uid: string;
  readonly key: ObjectKey;
  readonly owner: string;
  /** The member that has it or is about to. */
  member?: string;
  bound: boolean;
  /** How many its member had of the owner's when it was given this one, itself included. */
  nth?: number;
  /** Its owner reads deletion costs, and its author has written none. */
  costed: boolean;
  /** What its deletion costs, as Legation has written it. */
  cost?: number;
}

interface Owner {
  readonly proxies: Map<string, OwnedProxy>;
  readonly placed: Record<string, number>;
}

const NONE: Replicas = {};

/**
 * Where the live proxies of each owner are. Kept by the events of proxies and by each placement as it is decided, so that
 * a burst is counted and placing one costs the same however many there are.
 */
export class OwnedProxies {
  readonly #proxies = new Map<string, OwnedProxy>();
  readonly #owners = new Map<string, Owner>();

  /** A proxy is as the host shows it. */
  update(proxy: Stored<Pod>, costed = false): void {
    const { uid } = proxy.metadata;
    const owner = controllerOf(proxy)?.uid;
    if (owner === undefined || isTerminal(proxy) || isDeleting(proxy)) {
      this.remove(uid);
      return;
    }
    let own = this.#proxies.get(uid);
    if (own === undefined) {
      own = { uid, key: objectKey(proxy.metadata), owner, bound: false, costed };
      this.#proxies.set(uid, own);
      this.#owner(owner).proxies.set(uid, own);
    }
    own.costed = costed;
    if (!isBound(proxy)) return;
    own.bound = true;
    const cost = ownCost(proxy);
    if (cost === undefined) delete own.cost;
    else own.cost = cost;
    this.#move(own, (proxy.spec?.nodeName ?? "").slice(VIRTUAL_NODE_PREFIX.length));
  }

  remove(uid: string): void {
    const own = this.#proxies.get(uid);
    if (own === undefined) return;
    this.#move(own, undefined);
    this.#proxies.delete(uid);
    const owner = this.#owners.get(own.owner);
    owner?.proxies.delete(uid);
    if (owner?.proxies.size === 0) this.#owners.delete(own.owner);
  }

  /** A proxy that is not bound has its delegate, or a promise of room, in this member; undefined: nowhere any more. */
  place(uid: string, member: string | undefined): void {
    const own = this.#proxies.get(uid);
    if (own !== undefined && !own.bound) this.#move(own, member);
  }

  /** A member has the delegate of a proxy: said of those only that nothing else is known of. */
  held(uid: string, member: string | undefined): void {
    if (this.#proxies.get(uid)?.member === undefined) this.place(uid, member);
  }

  get(uid: string): OwnedProxy | undefined {
    return this.#proxies.get(uid);
  }

  /** Replicas of the owner by member. Shared and live: copy it to keep it. */
  placed(owner: string): Replicas {
    return this.#owners.get(owner)?.placed ?? NONE;
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

  #owner(uid: string): Owner {
    let owner = this.#owners.get(uid);
    if (owner === undefined) {
      owner = { proxies: new Map(), placed: {} };
      this.#owners.set(uid, owner);
    }
    return owner;
  }

  #move(own: OwnedProxy, member: string | undefined): void {
    if (own.member === member) return;
    const { placed } = this.#owner(own.owner);
    if (own.member !== undefined) {
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
  }
}

/** The deletion cost that Legation wrote; undefined when there is none, or somebody has written another one. */
function ownCost({ metadata: { annotations = {} } }: Stored<Pod>): number | undefined {
  const text = annotations[OWN_DELETION_COST_ANNOTATION];
  return text === undefined || annotations[DELETION_COST_ANNOTATION] !== text ? undefined : Number(text);
}
