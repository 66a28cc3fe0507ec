import { defined } from "../../../api/defined.ts";
import {
  CLUSTER_ANNOTATION,
  DELEGATE_FINALIZER,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  PLACED_CONDITION,
  virtualNodeName,
} from "../../../api/keys.ts";
import { objectRef, type Pod } from "../../../api/kubernetes.ts";
import { ignoring, isKubeError, isLastingRefusal } from "../../../kube/errors.ts";
import { pods } from "../../../kube/resources.ts";
import { conditionOf, deletionGrace, isBound, isDeleting } from "../../../pods/pod-state.ts";
import { memberOf } from "../../../pods/proxy.ts";
import { notPlacedCondition } from "../../../pods/proxy-conditions.ts";
import type { Memories } from "../../../scheduling/memories.ts";
import type { Memory } from "../../../scheduling/memory.ts";
import type { Reservations } from "../../../scheduling/reservations.ts";
import { failedAdmission } from "../../api-refusal.ts";
import type { Action, ActionOf } from "../decision/decision.ts";
import { isForced } from "../decision/delegates.ts";
import { notBound } from "../decision/report.ts";
import type { ActionOptions, ActionState, Context, Result } from "../options.ts";
import { Creation } from "./create-delegate.ts";
import { DelegateSync, patchProxy } from "./delegate-sync.ts";
import {
  expectChanged,
  expectDeleted,
  expectFinalizerRemoved,
  expectOnProxy,
  expectPrepared,
  unlessForced,
} from "./expectations.ts";
import { PreviousLeader } from "./read-previous-delegates.ts";
import { RefusedActions } from "./refused-actions.ts";
import { restoreDelegateMarks } from "./restore-delegate-marks.ts";

// Most members answer sooner. The deletion is sent again after SWEEP_AGAIN_MS.
const SWEEP_MS = 2_000;
/** Carries out the delegation controller's actions: the only I/O. */
export class Executor {
  readonly #options: ActionOptions;
  readonly #state: ActionState;
  readonly #memories: Memories;
  readonly #reservations: Reservations;
  readonly #sync: DelegateSync;
  readonly #creation: Creation;
  readonly #previousLeader: PreviousLeader;
  readonly #refused: RefusedActions;

  constructor(options: ActionOptions, state: ActionState) {
    this.#options = options;
    this.#state = state;
    const { memories, reservations } = state.placementState;
    this.#memories = memories;
    this.#reservations = reservations;
    this.#sync = new DelegateSync(options, memories);
    this.#creation = new Creation(options, state);
    this.#refused = new RefusedActions(options.refusedWrites, state.proxies);
    this.#previousLeader = new PreviousLeader({ ...options, memories, proxies: state.proxies, sync: this.#sync });
  }

  creatingIn(member: string): number {
    return this.#creation.under(member);
  }

  async execute(action: Action, context: Context): Result {
    const proxy = this.#state.proxies.get(context.key);
    try {
      const expectation = await this.#do(action, context);
      this.#refused.done(context.key, action);
      // Nothing is left to do sooner once the finalizer is gone. A graceful deletion, too, ends with grace 0.
      const isLast = action.type === "removeFinalizer" || (proxy !== undefined && isForced(proxy));
      return expectation && (isLast ? expectation : unlessForced(expectation));
    } catch (error) {
      this.#refused.failed(context.key, action, error);
      throw error;
    }
  }

  #do(action: Action, context: Context): Result {
    switch (action.type) {
      case "create":
        return this.#creation.create(action, context);
      case "reserve": {
        const { member, proxyUid, requests } = action;
        const asked = { requests, namespace: objectRef(context.key).namespace };
        if (this.#reservations.reserve(proxyUid, member, asked)) this.#options.events.emit("roomFreed");
        return Promise.resolve(undefined);
      }
      case "gather":
        this.#state.placementState.groups.place(action.proxyUid, action.member);
        return Promise.resolve(undefined);
      case "handOver":
        this.#state.placementState.groups.handOver(action.proxyUid);
        return Promise.resolve(undefined);
      case "prepare":
        this.#options.preparer.prepare(context.key, action.proxyUid, action.member);
        return Promise.resolve(expectPrepared(action.member));
      case "delete":
        if (action.surplus === true || action.forced === true) return this.#deleteBriefly(action, context);
        return this.#delete(action, context);
      case "sweep":
        return this.#sweep(action, context);
      case "confirmCreated":
        return this.#creation.confirmCreated(action, context);
      case "readPreviousDelegate":
        return this.#previousLeader.readDelegate(action, context);
      case "restoreMarks":
        return restoreDelegateMarks(action, context, { ...this.#options, memories: this.#memories });
      case "bind":
        return this.#bind(action, context);
      case "addFinalizer":
        return this.#addFinalizer(action, context);
      case "recordDelegate":
        return this.#recordDelegate(action, context);
      case "forward":
        return this.#sync.forward(action, context);
      case "status":
        return this.#status(action, context);
      case "report":
        return this.#report(action, context);
      case "announce":
        return this.#announce(action, context);
      case "deleteProxy":
        return this.#deleteProxy(action, context);
      case "removeFinalizer":
        return this.#removeFinalizer(action, context);
      case "evict":
        return this.#evict(action, context);
      case "noteRefusal": {
        const { proxyUid, refusal, ...refused } = action;
        const pod = this.#state.proxies.get(context.key);
        if (this.#state.placementState.retries.refuse(proxyUid, refusal, { ...refused, pod }))
          this.#options.events.emit("roomFreed");
        return Promise.resolve(undefined);
      }
    }
  }

  async #status(action: ActionOf<"status">, context: Context): Result {
    const expectation = await this.#sync.status(action, context);
    const { metrics, clock } = this.#options;
    const proxy = this.#state.proxies.get(context.key);
    const member = proxy && memberOf(proxy);
    // Only Clusters' names become labels, to bound cardinality.
    if (expectation !== undefined && member !== undefined && this.#options.registry.member(member) !== undefined) {
      metrics?.members.observeStage("status", member, (clock.now() - context.heardAt) / 1000);
    }
    return expectation;
  }

  async #delete(action: ActionOf<"delete">, { key, signal }: Context): Result {
    const { member: name, uid, graceSeconds, resourceVersion } = action;
    const member = this.#options.registry.member(name);
    if (member === undefined) return undefined;
    try {
      const options = { uid, signal, ...defined({ gracePeriodSeconds: graceSeconds, resourceVersion }) };
      await member.client.delete(pods, objectRef(key), options);
    } catch (error) {
      member.noteFailure(error);
      if (resourceVersion !== undefined && isKubeError(error, "Conflict")) {
        return expectChanged(name, uid, resourceVersion);
      }
      // A conflict means another pod by now, or a moment's refusal: the backoff decides when to look again.
      if (!isKubeError(error, "NotFound")) throw error;
    }
    return expectDeleted(name, uid, graceSeconds);
  }

  async #sweep(action: ActionOf<"sweep">, context: Context): Result {
    const { key, signal, log } = context;
    const proxy = await this.#options.host.find(pods, objectRef(key), { signal });
    // The store lags: the proxy exists, and its events are still to come.
    if (proxy?.metadata.uid === action.proxyUid) return undefined;
    if (this.#options.kept.keeps(action.member, key, action.uid)) return undefined;
    await this.#options.restoredHost.confirm(action.member, "pods", signal);
    this.#options.metrics?.members.countOrphan(action.member);
    log.info({ member: action.member, uid: action.uid }, "deleting a delegate whose proxy is gone");
    const removal = { type: "delete", member: action.member, uid: action.uid } as const;
    if (proxy === undefined) return this.#delete(removal, context);
    // Another pod has the name by now, and must not wait for this member.
    return this.#deleteBriefly(removal, context);
  }

  /** Deletes with a short deadline: the next sweep deletes again. */
  async #deleteBriefly(action: ActionOf<"delete">, { key, signal, heardAt, log }: Context): Result {
    try {
      const briefly = AbortSignal.any([signal, AbortSignal.timeout(SWEEP_MS)]);
      const expectation = await this.#delete(action, { key, signal: briefly, heardAt, log });
      // The next pod of the name waits for this one's delegate.
      if (action.forced === true) return expectation;
    } catch (error) {
      if (!isKubeError(error)) throw error;
      log.warn({ member: action.member, code: error.code }, error.message);
      if (action.surplus === true) this.#refused.failed(key, action, error);
    }
    return undefined;
  }

  async #bind(action: ActionOf<"bind">, context: Context): Result {
    const { key, signal } = context;
    const { type: _, proxyUid, ...binding } = action;
    const { member, delegateUid, memberNode } = binding;
    const ref = objectRef(key);
    const annotations = {
      [CLUSTER_ANNOTATION]: member,
      ...defined({ [DELEGATE_UID_ANNOTATION]: delegateUid, [MEMBER_NODE_ANNOTATION]: memberNode }),
      ...this.#state.placementState.divisions.costAnnotations(proxyUid),
    };
    const body = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { ...ref, uid: proxyUid, annotations },
      target: { apiVersion: "v1", kind: "Node", name: virtualNodeName(member) },
    };
    // The watch may show the Binding before the response arrives, and the memory of the search ends then.
    const memories = this.#memories;
    const search = memories.of(proxyUid);
    memories.noteSent(proxyUid, { binding });
    try {
      await this.#options.host.createSubresource(pods, ref, "binding", body, { signal });
      // Until a delegate is on record the memory is needed, except for room elsewhere.
      if (delegateUid === undefined) {
        const { lastReserved = member } = search;
        if (lastReserved !== member && this.#reservations.release(proxyUid, lastReserved))
          this.#options.events.emit("roomFreed");
        return expectOnProxy(proxyUid, isBoundOrDeleting);
      }
      this.#noteBound(search, member);
      const isNews = this.#reservations.noteBound(proxyUid, member, this.#state.proxies.get(key));
      if (isNews) this.#options.events.emit("roomFreed");
    } catch (error) {
      // A conflict means bound already, being deleted or another pod: the backoff decides when to look again.
      if (isKubeError(error, "NotFound")) return expectOnProxy(proxyUid, isBoundOrDeleting);
      // An earlier Binding without a response may still have been done.
      if (isSurelyUndone(error) && search.binding === undefined) memories.noteNotDone(proxyUid, "binding");
      await this.#tellUnbound(action, error, context);
      throw error;
    }
    return expectOnProxy(proxyUid, isBoundOrDeleting);
  }

  async #tellUnbound({ member, proxyUid }: ActionOf<"bind">, error: unknown, context: Context): Promise<void> {
    const memories = this.#memories;
    if (!isLastingRefusal(error) && !failedAdmission(error)) return;
    if (memories.writes.failed(proxyUid, `bind ${member}`, error) === "transient") return;
    const why = notBound(member, error.detail);
    if (memories.isReported(proxyUid, why.message, this.#options.clock.now())) return;
    await this.#report({ type: "report", proxyUid, ...why }, context);
  }

  #addFinalizer({ proxyUid }: ActionOf<"addFinalizer">, context: Context): Result {
    const body = { metadata: { uid: proxyUid, finalizers: [DELEGATE_FINALIZER] } };
    return this.#patchProxy(proxyUid, body, context);
  }

  async #recordDelegate(action: ActionOf<"recordDelegate">, context: Context): Result {
    const { proxyUid, resourceVersion, delegateUid, memberNode } = action;
    const memories = this.#memories;
    const { recording: earlier } = memories.of(proxyUid);
    memories.noteSent(proxyUid, { recording: { delegateUid, memberNode } });
    const annotations = { [DELEGATE_UID_ANNOTATION]: delegateUid, [MEMBER_NODE_ANNOTATION]: memberNode };
    const body = { metadata: { uid: proxyUid, resourceVersion, annotations } };
    try {
      const expectation = await this.#patchProxy(proxyUid, body, context);
      const recorded = this.#state.proxies.get(context.key)?.metadata.annotations?.[DELEGATE_UID_ANNOTATION];
      if (expectation === undefined || recorded === delegateUid) memories.forget(proxyUid);
      else memories.noteDone(proxyUid, "recording");
      return expectation;
    } catch (error) {
      // An earlier record without a response may still have been taken.
      const isUndone = isKubeError(error, "Conflict") || isSurelyUndone(error);
      if (isUndone && earlier === undefined) memories.noteNotDone(proxyUid, "recording");
      throw error;
    }
  }

  /** Tells why the pod waits. Where the host refuses the condition, the event alone tells it. */
  async #report(action: ActionOf<"report">, context: Context): Result {
    const { clock, recorder } = this.#options;
    const { key, log } = context;
    const { proxyUid, reason, message } = action;
    let expectation: Awaited<Result> = () => true;
    try {
      if (action.again !== true) expectation = await this.#condition(action, context);
    } catch (error) {
      if (!isLastingRefusal(error)) throw error;
      log.warn({ reason }, `this cluster refuses the condition that tells why the pod waits: ${error.detail}`);
    }
    const { namespace = "", name } = objectRef(key);
    const seeAlso = `legation status pod ${name} -n ${namespace}`;
    if (action.amounts !== true) recorder.record({ namespace, name, uid: proxyUid }, { reason, message, seeAlso });
    this.#memories.noteReported(proxyUid, action, clock.now());
    return expectation;
  }

  #condition({ proxyUid, reason, message, bound }: ActionOf<"report">, context: Context): Result {
    const { clock, notPlacedReason: shownAs } = this.#options;
    const proxy = this.#state.proxies.get(context.key);
    // The proxy was bound, or went, since the decision.
    if (proxy?.metadata.uid !== proxyUid || isBound(proxy) !== (bound === true)) return Promise.resolve(undefined);
    const type = PLACED_CONDITION;
    const former = conditionOf(proxy, type) === undefined ? [] : [{ type, $patch: "delete" }];
    const conditions = [notPlacedCondition(proxy, { reason, message, now: clock.wall(), shownAs }), ...former];
    // The precondition keeps a late write from undoing that the proxy is scheduled.
    const { resourceVersion } = proxy.metadata;
    const body = { metadata: { uid: proxyUid, resourceVersion }, status: { conditions } };
    return this.#patchProxy(proxyUid, body, context, "status");
  }

  #announce({ proxyUid, type: _, ...event }: ActionOf<"announce">, { key }: Context): Result {
    this.#options.recorder.record({ ...objectRef(key), uid: proxyUid }, event);
    return Promise.resolve(undefined);
  }

  async #deleteProxy({ proxyUid }: ActionOf<"deleteProxy">, context: Context): Result {
    await this.#deleteWithGrace(proxyUid, 0, context);
    return expectOnProxy(proxyUid, (proxy) => deletionGrace(proxy) === 0);
  }

  async #evict({ proxyUid, graceSeconds }: ActionOf<"evict">, context: Context): Result {
    const isDone = await this.#deleteWithGrace(proxyUid, graceSeconds, context);
    if (isDone) context.log.info("deleted, as its delegate is being deleted in its member");
    return expectOnProxy(proxyUid, isDeleting);
  }

  async #removeFinalizer({ proxyUid }: ActionOf<"removeFinalizer">, context: Context): Result {
    const body = { metadata: { uid: proxyUid, "$deleteFromPrimitiveList/finalizers": [DELEGATE_FINALIZER] } };
    const expectation = await this.#patchProxy(proxyUid, body, context);
    return expectation === undefined ? undefined : expectFinalizerRemoved(proxyUid);
  }

  #patchProxy(proxyUid: string, body: object, { key, signal }: Context, subresource?: "status"): Result {
    const options = { signal, dropManagedFields: true, metadataOnly: true, ...defined({ subresource }) };
    return patchProxy(proxyUid, () =>
      this.#options.host.patch(pods, objectRef(key), { type: "strategic", body }, options),
    );
  }

  /** Returns false when the proxy is gone. */
  async #deleteWithGrace(uid: string, gracePeriodSeconds: number, { key, signal }: Context): Promise<boolean> {
    const deletion = this.#options.host.delete(pods, objectRef(key), { uid, gracePeriodSeconds, signal });
    const isDeleted = deletion.then(() => true);
    return (await ignoring(isDeleted, "NotFound")) ?? false;
  }

  #noteBound({ fresh, attempts }: Memory, member: string): void {
    const { metrics, clock } = this.#options;
    const since = attempts[member]?.since;
    if (metrics === undefined || since === undefined || !fresh) return;
    metrics.members.observeStage("bind", member, (clock.now() - since) / 1000);
  }
}

/** Reports whether the host has not done a write, and will not. */
function isSurelyUndone(error: unknown): boolean {
  return isKubeError(error, "NotSent") || isLastingRefusal(error) || failedAdmission(error);
}

function isBoundOrDeleting(proxy: Pod): boolean {
  return isBound(proxy) || isDeleting(proxy);
}
