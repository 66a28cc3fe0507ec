import type { ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import { isBound } from "../../pods/pod-state.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { delegateCreationIn } from "../../scheduling/memory.ts";
import type { PlacementState } from "../../scheduling/placement-state.ts";
import { endsUnstarted, isBoundWithDelegate, isFor, ranUntold } from "./decision/delegates.ts";

export interface PlaceTrackerOptions {
  readonly registry: Pick<Registry, "holders" | "member" | "unconnected" | "forget">;
  readonly placementState: Pick<PlacementState, "groups" | "memories" | "spread">;
  readonly proxies: Pick<ReadStore<Pod>, "get" | "synced">;
  readonly clock: Pick<Clock, "now">;
}

/** Notes in the controller's memory where members show, or show no more, the delegate of a proxy that has no node. */
export class PlaceTracker {
  readonly #options: PlaceTrackerOptions;

  constructor(options: PlaceTrackerOptions) {
    this.#options = options;
  }

  update(key: ObjectKey): void {
    const { proxies, registry } = this.#options;
    if (!proxies.synced) return;
    const proxy = proxies.get(key);
    if (proxy === undefined) {
      if (registry.holders(key).every(({ delegates }) => delegates.get(key) === undefined)) registry.forget(key);
      return;
    }
    if (!isBound(proxy)) this.#unplace(key, proxy);
    if (!isBoundWithDelegate(proxy)) this.#noteHolder(key, proxy);
  }

  /** The delegate that stays counts, where there are two. */
  #noteHolder(key: ObjectKey, proxy: Stored<Pod>): void {
    const { registry, placementState, clock } = this.#options;
    const holders = registry.holders(key).flatMap(({ name, delegates }) => {
      const delegate = delegates.get(key);
      return delegate !== undefined && isFor(delegate, proxy) ? [{ name, ends: endsUnstarted(delegate) }] : [];
    });
    const holder = holders.find(({ ends }) => !ends) ?? holders[0];
    if (holder === undefined) return;
    if (!holder.ends) placementState.groups.hold(proxy.metadata.uid, holder.name);
    placementState.memories.noteFound(proxy.metadata.uid, holder.name, clock.now(), holder.ends);
  }

  /** The proxy counts no more where its delegate has gone, or goes, without having had a node. */
  #unplace(key: ObjectKey, proxy: Stored<Pod>): void {
    const { groups, memories, spread } = this.#options.placementState;
    const { uid } = proxy.metadata;
    const holder = groups.holderOf(uid);
    if (holder !== undefined && !this.#isPlace(holder, key, proxy)) groups.hold(uid, undefined);
    const place = spread.placeOf(uid);
    if (place !== undefined && !this.#isPlace(place, key, proxy)) memories.noteUnplaced(uid);
  }

  /** Reports whether the member has the delegate of an unbound proxy, is about to get it, or may have it. */
  #isPlace(name: string, key: ObjectKey, proxy: Stored<Pod>): boolean {
    const { registry, placementState } = this.#options;
    const member = registry.member(name);
    if (member === undefined) return registry.unconnected().some(({ metadata }) => metadata.name === name);
    const { uid } = proxy.metadata;
    const { memories } = placementState;
    const { reserved, uncertain } = memories.of(uid);
    if (reserved === name || uncertain === name || !member.reachable || !member.read) return true;
    // While its creation is retried in the member, pods that wait for its place must not hear of each attempt.
    if (memories.writes.isFailing(uid, delegateCreationIn(name))) return true;
    const delegate = member.delegates.get(key);
    if (delegate !== undefined && isFor(delegate, proxy)) return !endsUnstarted(delegate);
    const departed = member.delegates.departed(key);
    return ranUntold(departed === undefined ? {} : { departed }, proxy) !== undefined;
  }
}
