import { defined } from "../../api/defined.ts";
import { byName } from "../../api/json.ts";
import { DELETION_COST_ANNOTATION, OWN_DELETION_COST_ANNOTATION } from "../../api/keys.ts";
import { type ObjectKey, objectRef, type Pod, type Stored } from "../../api/kubernetes.ts";
import { claimNames } from "../../copies/claims.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { pods } from "../../kube/resources.ts";
import { podRequests } from "../../placement/requests.ts";
import { conditionOf, controllerOf } from "../../pods/pod-state.ts";
import type { RefusedWrite } from "../../pods/proxy-conditions.ts";
import type { Timer } from "../../runtime/clock.ts";
import { type ActionContext, Controller, type ControllerOptions, type Expectation } from "../../runtime/controller.ts";
import type { Events } from "../../runtime/event-bus.ts";
import { KeyedTimers } from "../../runtime/keyed-timers.ts";
import type { ReadStore } from "../../runtime/store.ts";
import { WriteGuard } from "../../runtime/write-guard.ts";
import type { Moving } from "../../scheduling/eligibility.ts";
import type { OwnedProxies } from "../../scheduling/owned-proxies.ts";
import { workloadOf } from "../../scheduling/workload.ts";
import type { ControllerEvents } from "../events.ts";
import { decide } from "./decide.ts";
import type { Action, Observed, Replica } from "./model.ts";

export interface PreferencesOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly owned: OwnedProxies;
  readonly proxies: ReadStore<Pod>;
  readonly events: Events<ControllerEvents>;
  readonly eligibilities: {
    moving(proxy: Stored<Pod>): Moving | undefined;
  };
  readonly refusedWrites: RefusedMoves;
}

interface RefusedMoves {
  note(key: ObjectKey, proxyUid: string, what: string, error: unknown, refused: RefusedWrite): void;
  over(key: ObjectKey, proxyUid: string, what: string): void;
}

// A workload that changes is reconciled now and then, not with each of its pods.
const COALESCE_MS = 2_000;
// Members change all the time.
const MEMBERS_MS = 5_000;
// A PodDisruptionBudget that allows no disruption now may do so soon.
const REFUSED_MS = 10_000;
// A ReplicaSet creates a replacement at once, a StatefulSet after the end of the old pod.
const REPLACED_MS = 60_000;

// A member whose scheduler found no node may have one later, but each attempt ends a running replica.
const MOVE_HOLD = { holdMs: 10 * 60_000, maxHoldMs: 24 * 60 * 60_000 };

// These controllers replace an evicted pod without loss. A Job would start its work again.
const MOVABLE: ReadonlySet<string> = new Set(["ReplicaSet", "ReplicationController", "StatefulSet"]);

// Events after which a member may be there, gone, or have more room.
const MEMBERS_CHANGED = ["cluster", "connection", "memberNodes", "responsive", "ended", "nodeSpec", "homeApi"] as const;

type Context = ActionContext<string>;

interface Moved {
  readonly total: number;
  /** End of the wait for replacements, which do not come if the owner was scaled down meanwhile; epoch ms. */
  until: number;
  /** Evicted replicas by uid: the store may still show them. */
  readonly evicted: Map<string, ObjectKey>;
  readonly had: Map<string, number>;
}

/** Moves replicas out of members that their workload excludes, and under `rebalance`; keeps deletion costs in order. One key is the uid of one owner. */
export class PreferencesController {
  readonly #options: PreferencesOptions;
  readonly #loop: Controller<string, Observed, Action>;
  readonly #due: KeyedTimers<string>;
  readonly #moved = new Map<string, Moved>();
  /** Moves that brought a member no replica, by owner and member. */
  readonly #moves: WriteGuard;
  readonly #dividing = new Set<string>();
  #membersTimer: Timer | undefined;

  constructor(options: PreferencesOptions) {
    this.#options = options;
    this.#due = new KeyedTimers(options.clock);
    this.#moves = new WriteGuard(options);
    this.#loop = new Controller<string, Observed, Action>(
      {
        name: "preferences",
        observe: (owner) => this.#observe(owner),
        decide,
        execute: (action, context) => this.#execute(action, context),
      },
      options,
    );
    const { events } = options;
    events.on("proxy", ({ object }) => this.#onProxy(object));
    events.on("defaultsChanged", () => this.#onDefaults());
    events.on("wishes", (namespace) => this.#onDefaults(namespace));
    for (const name of MEMBERS_CHANGED) events.on(name, () => this.#onMembers());
  }

  async stop(): Promise<void> {
    this.#membersTimer?.cancel();
    this.#due.stop();
    await this.#loop.stop();
  }

  #onProxy(proxy: Stored<Pod>): void {
    const owner = controllerOf(proxy)?.uid;
    if (owner !== undefined) this.#later(owner, COALESCE_MS);
  }

  #onMembers(): void {
    this.#membersTimer ??= this.#options.clock.after(MEMBERS_MS, () => {
      this.#membersTimer = undefined;
      for (const owner of this.#dividing) this.#loop.enqueue(owner);
    });
  }

  #onDefaults(namespace?: string): void {
    const { owned } = this.#options;
    for (const owner of owned.owners()) {
      const isConcerned = namespace === undefined || owned.namespaceOf(owner) === namespace;
      if (isConcerned) this.#later(owner, COALESCE_MS);
    }
  }

  #later(owner: string, delayMs: number): void {
    this.#due.start(owner, delayMs, () => this.#loop.enqueue(owner));
  }

  #observe(owner: string): Observed | undefined {
    const { owned, eligibilities, proxies: store, clock } = this.#options;
    const all = owned.of(owner).flatMap((own) => {
      const proxy = store.get(own.key);
      return proxy?.metadata.uid === own.uid ? [{ own, proxy }] : [];
    });
    const newest = all.reduce<Stored<Pod> | undefined>(
      (last, { proxy }) => (isOlder(last, proxy) ? proxy : last),
      undefined,
    );
    const moving = newest === undefined ? undefined : eligibilities.moving(newest);
    if (newest === undefined || moving === undefined) {
      this.#moved.delete(owner);
      this.#moves.forget(owner);
      this.#dividing.delete(owner);
      return undefined;
    }
    this.#dividing.add(owner);
    const { excludes, ...shared } = moving;
    const replicas = all.flatMap(({ own, proxy }): Replica[] => {
      if (own.member === undefined || !own.bound) return [];
      const { uid, key, member, cost, costed } = own;
      return [
        {
          uid,
          resourceVersion: proxy.metadata.resourceVersion,
          key,
          member,
          costed,
          ready: conditionOf(proxy, "Ready")?.status === "True",
          createdAt: createdAt(proxy),
          ...(excludes?.(proxy, member) === true ? { excluded: true } : {}),
          ...defined({ cost }),
        },
      ];
    });
    const waiting = all.length - replicas.length;
    const moved = this.#moved.get(owner);
    const isEnding = [...(moved?.evicted ?? [])].some(([uid, key]) => store.get(key)?.metadata.uid === uid);
    // A StatefulSet replaces a pod after its end, which may take its grace period.
    if (moved !== undefined && isEnding) moved.until = clock.now() + REPLACED_MS;
    const staying = all.filter(({ own }) => moved?.evicted.has(own.uid) !== true).length;
    const replacing = moved !== undefined && staying < moved.total && clock.now() < moved.until;
    if (!replacing && waiting === 0) this.#judge(owner);
    return {
      ...shared,
      key: workloadOf(newest),
      // A replica whose data is in a member would come back there.
      movable: MOVABLE.has(controllerOf(newest)?.kind ?? "") && claimNames(newest).length === 0,
      replicas,
      waiting,
      ...(replacing ? { replacingUntil: moved.until } : {}),
      ...this.#others(owner),
      requests: podRequests(newest),
      heldMoves: this.#moves.of(owner) ?? {},
    };
  }

  #others(owner: string): Pick<Observed, "others"> {
    const { owned } = this.#options;
    const uids = owned.others(owner);
    if (uids.length === 0) return {};
    const placed = uids.map((uid) => byName(owned.placed(uid)));
    const unready = uids.reduce((sum, uid) => sum + owned.unready(uid), 0);
    const total = owned.total(owner);
    const larger = uids.some((uid) => owned.total(uid) > total || (owned.total(uid) === total && uid < owner));
    return { others: { placed, unready, larger } };
  }

  /** A member that has no more replicas than before did not take the moved one. */
  #judge(owner: string): void {
    const moved = this.#moved.get(owner);
    if (moved === undefined) return;
    this.#moved.delete(owner);
    const { owned } = this.#options;
    const { counts } = owned.counts(owner);
    // Fewer replicas than before the moves: the workload was scaled down, so no member refused one.
    const isSmaller = owned.of(owner).length < moved.total - moved.evicted.size;
    for (const [member, before] of moved.had) {
      if ((counts.get(member) ?? 0) > before) this.#moves.done(owner, member);
      else if (!isSmaller) this.#moves.hold(owner, member, "NoEffect", MOVE_HOLD);
    }
  }

  async #execute(action: Action, context: Context): Promise<Expectation<Observed> | undefined> {
    return action.type === "evict" ? this.#evict(action, context) : this.#write(action, context);
  }

  async #evict(
    action: Extract<Action, { readonly type: "evict" }>,
    context: Context,
  ): Promise<Expectation<Observed> | undefined> {
    const { uid, from, to } = action;
    const { key: owner, signal, log } = context;
    const ref = objectRef(action.key);
    const body = {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: ref,
      deleteOptions: { preconditions: { uid } },
    };
    const total = this.#options.owned.of(owner).length;
    const before = to === undefined ? 0 : (this.#options.owned.counts(owner).counts.get(to) ?? 0);
    try {
      await this.#options.host.createSubresource(pods, ref, "eviction", body, { signal });
    } catch (error) {
      // The proxy changed, or is gone: that is an event.
      if (isKubeError(error, "NotFound")) return undefined;
      if (!isKubeError(error, "TooManyRequests")) {
        this.#tellRefused(action, error);
        throw error;
      }
      log.info({ pod: action.key, proxy: uid, from, to }, "not moved now: a PodDisruptionBudget allows no disruption");
      this.#later(owner, Math.max(REFUSED_MS, error.retryAfterMs ?? 0));
      return undefined;
    }
    this.#options.refusedWrites.over(action.key, uid, action.type);
    log.info({ pod: action.key, proxy: uid, from, to }, "moving a replica");
    const earlier = this.#moved.get(owner);
    const had = earlier?.had ?? new Map<string, number>();
    if (to !== undefined && !had.has(to)) had.set(to, before);
    const until = this.#options.clock.now() + REPLACED_MS;
    const evicted = earlier?.evicted ?? new Map<string, ObjectKey>();
    evicted.set(uid, action.key);
    this.#moved.set(owner, { total: Math.max(total, earlier?.total ?? 0), until, evicted, had });
    return ({ replicas }) => !replicas.some((replica) => replica.uid === uid);
  }

  #tellRefused({ type, key, uid }: Action, error: unknown): void {
    if (!isKubeError(error)) return;
    const what =
      type === "evict" ? "to evict the pod, whose workload has it in another member" : "the pod's deletion cost";
    const message = `this cluster refuses ${what}: ${error.detail}; allow it to Legation's controller, which tries again`;
    this.#options.refusedWrites.note(key, uid, type, error, { reason: "NotMoved", message });
  }

  async #write(
    action: Extract<Action, { readonly type: "cost" }>,
    { signal }: Context,
  ): Promise<Expectation<Observed> | undefined> {
    const { uid, resourceVersion, cost } = action;
    const text = String(cost);
    const annotations = { [DELETION_COST_ANNOTATION]: text, [OWN_DELETION_COST_ANNOTATION]: text };
    const body = { metadata: { uid, resourceVersion, annotations } };
    const options = { signal, dropManagedFields: true, metadataOnly: true };
    try {
      await this.#options.host.patch(pods, objectRef(action.key), { type: "merge", body }, options);
    } catch (error) {
      // The event of the change reconciles the owner again.
      if (isKubeError(error, "NotFound", "Conflict")) return undefined;
      this.#tellRefused(action, error);
      throw error;
    }
    this.#options.refusedWrites.over(action.key, uid, action.type);
    return ({ replicas }) => replicas.every((replica) => replica.uid !== uid || replica.cost === cost);
  }
}

function isOlder(last: Stored<Pod> | undefined, proxy: Stored<Pod>): boolean {
  return last === undefined || createdAt(last) < createdAt(proxy);
}

function createdAt({ metadata }: Stored<Pod>): string {
  return metadata.creationTimestamp ?? "";
}
