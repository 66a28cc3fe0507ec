import type { RequestedPlacement } from "../api/annotations.ts";
import { defined } from "../api/defined.ts";
import { type ObjectKey, objectKey, type Pod, type Stored } from "../api/kubernetes.ts";
import { type Amounts, addAmounts } from "../api/quantity.ts";
import { podRequests } from "../placement/requests.ts";
import type { Gang } from "../placement/rules.ts";
import { asksHostFirst } from "../pods/overflow.ts";
import { controllerOf, isBound, isDeleting } from "../pods/pod-state.ts";
import { memberOf } from "../pods/proxy.ts";
import { MemberCounts } from "./member-counts.ts";

/** A group as a pod names it. */
export interface GroupName {
  readonly id: string;
  /** Shown in messages. */
  readonly text: string;
  /** The group's pods are placed together: a member's scheduler may start none before it has all. Default: the first is bound, and others follow. */
  readonly isGang?: true;
}

export type FindPod = (uid: string) => Stored<Pod> | undefined;

export interface GroupPlace {
  readonly text: string;
  /** The member of the group's bound pods. No other may have one. */
  readonly home?: string;
  /** Another pod of the group that is being placed while the group has no home. */
  readonly first?: ObjectKey;
  /** Uids of the group's other pods without a node. */
  readonly others: readonly string[];
  /** Pods of a gang without a home, this one among them. */
  readonly gang?: Gang;
  /** Members that have, or are about to get, delegates of a gang's other pods while it has no home. The pod enters no other. */
  readonly heldIn?: readonly string[];
  /** The gang's pods that have delegates wait for this one, which has no member. */
  readonly leads?: true;
}

interface Entry {
  readonly uid: string;
  readonly key: ObjectKey;
  readonly group: string;
  readonly requests: Amounts;
  /** The member that the pod has, or is to get. */
  member?: string;
  bound: boolean;
}

interface Group {
  readonly text: string;
  readonly isGang: boolean;
  /** The pod of a gang without a home whose member the others follow, until it is bound or gone. */
  leader?: Entry;
  readonly unbound: Map<string, Entry>;
  /** Sums over the unbound pods. */
  readonly requests: Record<string, number>;
  readonly requestsIn: Map<string, Record<string, number>>;
  /** Unbound pods by the members that may have their delegates: one that moves is not there any more, by its place. */
  readonly held: MemberCounts;
  readonly bound: MemberCounts;
  home: string | undefined;
}

/** Returns the pod's group. `find` looks up pods that may own it. */
export function groupOf(
  pod: Stored<Pod>,
  { group, groupBy }: RequestedPlacement,
  find: FindPod,
): GroupName | undefined {
  const { namespace = "", labels = {} } = pod.metadata;
  if (group !== undefined) return { id: `${namespace}/group/${group}`, text: `group ${group}` };
  if (groupBy === undefined) return undefined;
  if (groupBy.by === "label") {
    const value = Object.hasOwn(labels, groupBy.key) ? labels[groupBy.key] : undefined;
    if (value === undefined) return undefined;
    const text = `${groupBy.key}=${value}`;
    return { id: `${namespace}/label/${text}`, text: `the group of ${text}` };
  }
  // Follows owners that are pods: a Spark executor belongs to the group of its driver.
  let top = pod;
  const seen = new Set<string>();
  for (;;) {
    const owner = controllerOf(top) ?? top.metadata.ownerReferences?.find(({ kind }) => kind === "Pod");
    if (owner === undefined) {
      return { id: `${namespace}/owner/${top.metadata.uid}`, text: `the group of Pod ${top.metadata.name}` };
    }
    const parent = owner.kind === "Pod" && !seen.has(owner.uid) ? find(owner.uid) : undefined;
    if (parent === undefined) {
      return { id: `${namespace}/owner/${owner.uid}`, text: `the group of ${owner.kind} ${owner.name}` };
    }
    seen.add(owner.uid);
    top = parent;
  }
}

/**
 * The place of each group. While one has no home, one of its pods at a time is placed and the others follow. Of a gang, others follow
 * one that is placed as soon as it has a member, and leave with it: none enters a member before all have left the others.
 */
export class Groups {
  readonly #pods = new Map<string, Entry>();
  readonly #groups = new Map<string, Group>();
  readonly #onChange: (keys: readonly ObjectKey[]) => void;

  constructor(onChange: (keys: readonly ObjectKey[]) => void) {
    this.#onChange = onChange;
  }

  /** Notes a proxy as the host shows it. A proxy that is being deleted, has failed or is on a host node holds its group nowhere. */
  update(proxy: Stored<Pod>, name: GroupName | undefined): void {
    const { uid } = proxy.metadata;
    const entry = this.#pods.get(uid);
    const member = memberOf(proxy);
    const isElsewhere = isBound(proxy) && member === undefined;
    if (name === undefined || isDeleting(proxy) || isElsewhere || proxy.status?.phase === "Failed") {
      this.remove(uid);
      return;
    }
    if (entry !== undefined && entry.group !== name.id && !isSameOwners(proxy, entry.group, name.id)) this.remove(uid);
    const own = this.#pods.get(uid) ?? this.#add(proxy, name);
    const group = this.#groups.get(own.group);
    if (own.bound || member === undefined || group === undefined) return;
    this.#count(group, own, -1);
    group.unbound.delete(uid);
    if (group.leader === own) delete group.leader;
    group.held.move(uid, undefined);
    own.bound = true;
    own.member = member;
    group.bound.move(uid, member);
    this.#chooseHome(group);
  }

  /** Notes the member where an unbound proxy has its delegate, or is about to; undefined: none any more. */
  place(uid: string, member: string | undefined): void {
    const entry = this.#pods.get(uid);
    if (entry === undefined || entry.bound || entry.member === member) return;
    const group = this.#groups.get(entry.group);
    if (group === undefined) return;
    this.#count(group, entry, -1);
    if (member === undefined) delete entry.member;
    else entry.member = member;
    this.#count(group, entry, 1);
    if (member === undefined) {
      // Others follow it no longer if none is where it was.
      if (group.leader === entry && !isAnyPlaced(group)) delete group.leader;
      if (group.home === undefined) this.#tell(group);
    } else if (group.isGang) {
      group.leader ??= entry;
      if (group.leader === entry) this.#tell(group);
    }
  }

  /** Notes a member that shows the delegate, which is its place unless the proxy has one already. */
  noteDelegate(uid: string, member: string): void {
    this.hold(uid, member);
    if (this.#pods.get(uid)?.member === undefined) this.place(uid, member);
  }

  /** Notes a member that has the delegate of an unbound proxy, or to which a request to create it is sent. Undefined: none has. */
  hold(uid: string, member: string | undefined): void {
    const entry = this.#pods.get(uid);
    const group = entry === undefined || entry.bound ? undefined : this.#groups.get(entry.group);
    if (group === undefined) return;
    const before = group.held.memberOf(uid);
    group.held.move(uid, member);
    this.#tellLeft(group, before);
  }

  /** Returns the member that has, or is about to get, the delegate of an unbound proxy. */
  holderOf(uid: string): string | undefined {
    return this.#groups.get(this.#pods.get(uid)?.group ?? "")?.held.memberOf(uid);
  }

  /** Lets another pod of the gang lead, which has a member: this one finds none. */
  handOver(uid: string): void {
    const entry = this.#pods.get(uid);
    const group = entry === undefined ? undefined : this.#groups.get(entry.group);
    if (group !== undefined && group.leader === entry && entry?.member === undefined) this.#chooseLeader(group);
  }

  remove(uid: string): void {
    const entry = this.#pods.get(uid);
    const group = entry === undefined ? undefined : this.#groups.get(entry.group);
    if (entry === undefined || group === undefined) return;
    this.#pods.delete(uid);
    if (group.unbound.has(uid)) this.#count(group, entry, -1);
    group.unbound.delete(uid);
    const holder = group.held.memberOf(uid);
    group.held.move(uid, undefined);
    this.#tellLeft(group, holder);
    if (group.leader === entry) this.#chooseLeader(group);
    group.bound.move(uid, undefined);
    if (group.unbound.size === 0 && group.bound.size === 0) this.#groups.delete(entry.group);
    else if (entry.bound) this.#chooseHome(group);
    else if (group.home === undefined && entry.member !== undefined) this.#tell(group);
  }

  placeOf(uid: string): GroupPlace | undefined {
    const entry = this.#pods.get(uid);
    const group = entry === undefined ? undefined : this.#groups.get(entry.group);
    if (group === undefined) return undefined;
    const { text, leader } = group;
    const home = group.home ?? (leader?.uid === uid ? undefined : leader?.member);
    const isTogether = group.isGang && group.home === undefined;
    const gang = isTogether
      ? { gang: { requests: group.requests, in: group.requestsIn }, heldIn: heldByOthers(group, uid) }
      : {};
    if (home !== undefined) return { text, home, others: [], ...gang };
    const others = [...group.unbound.values()].filter((other) => other.uid !== uid);
    const leading = leader?.uid === uid ? undefined : leader;
    const first = group.isGang ? leading?.key : others.find(({ member }) => member !== undefined)?.key;
    const isWaitedFor = leader?.uid === uid && leader.member === undefined;
    const leads = isWaitedFor ? { leads: true as const } : {};
    return { text, ...defined({ first }), others: others.map((other) => other.uid), ...gang, ...leads };
  }

  /** Reports whether the pod may get a delegate in the member now. */
  mayEnter(uid: string, member: string): boolean {
    // A pod that was bound first gets its delegate afterwards.
    if (this.#pods.get(uid)?.bound === true) return true;
    const { home = member, first, heldIn = [] } = this.placeOf(uid) ?? {};
    return home === member && first === undefined && heldIn.every((holder) => holder === member);
  }

  #add(proxy: Stored<Pod>, { id, text, isGang }: GroupName): Entry {
    const { uid } = proxy.metadata;
    const requests = isGang === true ? podRequests(proxy) : {};
    const entry: Entry = { uid, key: objectKey(proxy.metadata), group: id, requests, bound: false };
    const made: Group = {
      text,
      isGang: isGang === true,
      unbound: new Map(),
      requests: {},
      requestsIn: new Map(),
      held: new MemberCounts(),
      bound: new MemberCounts(),
      home: undefined,
    };
    const group = this.#groups.get(id) ?? made;
    this.#groups.set(id, group);
    group.unbound.set(uid, entry);
    this.#count(group, entry, 1);
    this.#pods.set(uid, entry);
    return entry;
  }

  /** The member of most bound pods is the home. Several have some only if the group was named later. */
  #chooseHome(group: Group): void {
    const [home] = [...group.bound.counts].sort(([a, some], [b, more]) => more - some || (a < b ? -1 : 1))[0] ?? [];
    if (home === group.home) return;
    group.home = home;
    if (home === undefined && group.isGang) this.#chooseLeader(group);
    this.#tell(group);
  }

  #chooseLeader(group: Group): void {
    delete group.leader;
    const next = [...group.unbound.values()].find(({ member }) => member !== undefined);
    if (next !== undefined) group.leader = next;
    this.#tell(group);
  }

  /** Adds an unbound pod's requests to the sums, or takes them away. */
  #count(group: Group, { requests, member }: Entry, factor: 1 | -1): void {
    addAmounts(group.requests, requests, factor);
    if (member === undefined) return;
    const sum = group.requestsIn.get(member) ?? {};
    addAmounts(sum, requests, factor);
    group.requestsIn.set(member, sum);
  }

  /** Wakes a gang that waits until none of its pods is in another member. */
  #tellLeft(group: Group, member: string | undefined): void {
    if (group.isGang && member !== undefined && !group.held.counts.has(member)) this.#tell(group);
  }

  #tell(group: Group): void {
    this.#onChange([...group.unbound.values()].map(({ key }) => key));
  }
}

/** Owners of a pod that the host was asked for first may be host pods, which are known only while the pod is placed. */
function isSameOwners(proxy: Stored<Pod>, before: string, now: string): boolean {
  const byOwner = `${proxy.metadata.namespace ?? ""}/owner/`;
  return asksHostFirst(proxy) && isBound(proxy) && before.startsWith(byOwner) && now.startsWith(byOwner);
}

function heldByOthers({ held }: Group, uid: string): string[] {
  return [...held.without(uid)].flatMap(([member, count]) => (count > 0 ? [member] : []));
}

function isAnyPlaced({ unbound }: Group): boolean {
  return [...unbound.values()].some(({ member }) => member !== undefined);
}
