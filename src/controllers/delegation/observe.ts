import { virtualNodeName } from "../../api/keys.ts";
import { type ObjectKey, objectKey, objectRef, type Pod, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isOutOfService } from "../../placement/member-candidate.ts";
import { isNodeReady } from "../../placement/node-fit.ts";
import { ownerOf } from "../../pods/delegate.ts";
import { isBound } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { awaitsDelegate } from "./decisions/decide-awaited.ts";
import { endsUnstarted, isFor, ranUntold } from "./decisions/delegates.ts";
import type { MemberView, Memory, Observed } from "./decisions/model.ts";
import type { Needs } from "./decisions/needs.ts";
import { unknownView, viewOf } from "./member-view.ts";
import type { DelegationOptions } from "./options.ts";
import type { PlacementState } from "./placement/placement-state.ts";

/** Where what decisions depend on is read. */
export interface ObserverOptions
  extends Pick<DelegationOptions, "identity" | "registry" | "dependencies" | "virtualNodes" | "clock"> {
  readonly placementState: PlacementState;
  /** The host's proxies. */
  readonly proxies: ReadStore<Pod>;
  /** Since when nobody has taken the proxy; epoch ms. */
  readonly waitingSince: (key: ObjectKey) => number | undefined;
}

/** Reads from the stores what a decision on one pod name depends on. */
export class Observer {
  readonly #options: ObserverOptions;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  /** Undefined when there is nothing under the key, and before the host's proxies have been read. */
  observe(key: ObjectKey): Observed | undefined {
    const { proxies, registry } = this.#options;
    // Before the host's proxies are known, every delegate would look like an orphan.
    if (!proxies.synced) return undefined;
    const proxy = proxies.get(key);
    const members = [...this.#concerned(key, proxy).map((member) => viewOf(member, key)), ...this.#unknown(proxy)];
    if (proxy === undefined && members.every(({ delegate }) => delegate === undefined)) {
      registry.forget(key);
      return undefined;
    }
    if (proxy === undefined) return this.#seen(key, proxy, members);
    if (!isBound(proxy)) this.#unplace(proxy, members);
    if (!isBound(proxy) || awaitsDelegate(proxy)) this.#noteHolder(proxy, members);
    return this.#seen(key, proxy, members);
  }

  /** Of two delegates it is the one that stays. */
  #noteHolder(proxy: Stored<Pod>, members: readonly MemberView[]): void {
    const { clock, placementState } = this.#options;
    const holders = members.filter(({ delegate }) => isFor(delegate, proxy));
    const holder = holders.find((member) => !isEnding(member)) ?? holders[0];
    if (holder === undefined) return;
    placementState.memories.noteFound(proxy.metadata.uid, holder.name, clock.now(), isEnding(holder));
  }

  /** A proxy without a node counts no more where its delegate has gone, or goes, without having had one. */
  #unplace(proxy: Stored<Pod>, members: readonly MemberView[]): void {
    const { memories, spread } = this.#options.placementState;
    const { uid } = proxy.metadata;
    const place = spread.placeOf(uid);
    if (place === undefined) return;
    const view = members.find(({ name }) => name === place);
    if (view === undefined || !isPlace(view, proxy, memories.of(uid))) memories.noteUnplaced(uid);
  }

  /** What a decision would see if this pod, which may be no proxy yet, were the proxy under the key. */
  seen(key: ObjectKey, pod: Stored<Pod>): Observed {
    const members = this.#options.registry.members().map((member) => viewOf(member, key));
    return this.#seen(key, pod, [...members, ...this.#unknown(pod)]);
  }

  #seen(key: ObjectKey, proxy: Stored<Pod> | undefined, members: readonly MemberView[]): Observed {
    const { identity, placementState } = this.#options;
    const waitingSince = this.#options.waitingSince(key);
    return {
      ref: objectRef(key),
      host: identity,
      proxy,
      members,
      memory: placementState.memories.of(proxy?.metadata.uid ?? ""),
      ...(waitingSince === undefined ? {} : { waitingSince }),
      ...placementState.view.of(proxy),
      merged: proxy && placementState.rules.merged(proxy),
      apiAccess: (member) => placementState.view.apiAccess(proxy, member),
      needs: () => (proxy === undefined ? undefined : this.#needs(proxy)),
      apiPending: (member) => proxy !== undefined && placementState.view.apiPending(proxy, member),
      specIn: (candidate) => placementState.view.specIn(proxy, candidate),
      unheard: (member) => this.#unheard(member),
      outOfService: (member) => this.#outOfService(member),
    };
  }

  /** One that is bound has no other member to go to: it waits until it is known how it reaches the host from there. */
  #needs(proxy: Stored<Pod>): Needs | undefined {
    const { dependencies, placementState } = this.#options;
    const needs = dependencies.needs(proxy);
    if (!isBound(proxy) || (needs !== undefined && needs.state !== "there")) return needs;
    return {
      state: "there",
      in: (member) => (placementState.view.apiPending(proxy, member) ? "unprepared" : (needs?.in(member) ?? "ready")),
    };
  }

  /** Only a proxy that needs a place is looked at in all members: a hundred of them cost the others nothing. */
  #concerned(key: ObjectKey, proxy: Stored<Pod> | undefined): readonly Member[] {
    const { placementState, registry } = this.#options;
    if (proxy !== undefined && !isBound(proxy)) return registry.members();
    const concerned = new Set(registry.holders(key));
    const { uid = "" } = proxy?.metadata ?? {};
    for (const name of [proxy === undefined ? undefined : memberOf(proxy), placementState.memories.of(uid).uncertain]) {
      const member = name === undefined ? undefined : registry.member(name);
      if (member !== undefined) concerned.add(member);
    }
    return [...concerned];
  }

  /** Clusters that this controller has never reached, for want of credentials: a proxy may have its delegate there all the same. */
  #unknown(proxy: Stored<Pod> | undefined): MemberView[] {
    if (proxy === undefined) return [];
    const { registry } = this.#options;
    const name = isBound(proxy) ? memberOf(proxy) : undefined;
    return registry
      .unconnected()
      .filter(({ metadata }) => name === undefined || metadata.name === name)
      .map((cluster) => unknownView(cluster, registry.problem(cluster.metadata.name) ?? "it is not connected"));
  }

  #unheard(member: string): boolean {
    const node = this.#options.virtualNodes.get(objectKey({ name: virtualNodeName(member) }));
    return node !== undefined && !isNodeReady(node);
  }

  #outOfService(member: string): boolean {
    return isOutOfService(this.#options.virtualNodes.get(objectKey({ name: virtualNodeName(member) })));
  }
}

/** Whether the member has the delegate of a proxy without a node, is about to get it, or may have it. */
function isPlace(view: MemberView, proxy: Stored<Pod>, { promised, uncertain, attempts }: Memory): boolean {
  const { name, delegate, reachable, read } = view;
  if (promised === name || uncertain === name || !reachable || !read) return true;
  // It goes on being made there: whoever waits for its place is not to hear of each attempt.
  if (attempts.get(name)?.failingSince !== undefined) return true;
  if (delegate !== undefined && isFor(delegate, proxy)) return !endsUnstarted(delegate);
  return ranUntold(view, proxy) !== undefined;
}

function isEnding({ delegate }: MemberView): boolean {
  return delegate !== undefined && endsUnstarted(delegate);
}

/** The proxy's uid, of which every line about a pod tells, whoever writes it. */
export function identify({ proxy, members }: Observed): Readonly<Record<string, string>> {
  if (proxy !== undefined) return { proxy: proxy.metadata.uid };
  for (const { delegate } of members) {
    const uid = delegate === undefined ? undefined : ownerOf(delegate)?.uid;
    if (uid !== undefined) return { proxy: uid };
  }
  return {};
}
