import {
  CLUSTER_ANNOTATION,
  DELEGATE_FINALIZER,
  DELEGATE_UID_ANNOTATION,
  MEMBER_NODE_ANNOTATION,
  virtualNodeName,
} from "../../api/keys.ts";
import type { KubeObject, ObjectKey, Pod, Stored } from "../../api/kubernetes.ts";
import { objectRef } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isKubeError } from "../../kube/errors.ts";
import { pods } from "../../kube/resources.ts";
import { podRequests } from "../../placement/requests.ts";
import { madeByHost, ownerOf } from "../../pods/delegate.ts";
import { droppable } from "../../pods/dropped-fields.ts";
import { notPlacedCondition } from "../../pods/feedback.ts";
import { deletionGrace, isBound, isDeleting } from "../../pods/phase.ts";
import type { ActionContext, Shown } from "../../runtime/controller.ts";
import { notConfirmed } from "../not-confirmed.ts";
import { isUntryable, tryDelegate } from "../try-delegate.ts";
import { awaitsDelegate } from "./decide-awaited.ts";
import { Exchange, patchProxy } from "./exchange.ts";
import type { HeldDelegates } from "./held-delegates.ts";
import { KnownFields } from "./known-fields.ts";
import { look } from "./look.ts";
import type { Memories } from "./memory.ts";
import type { Action, Observed } from "./model.ts";
import type { DelegationOptions } from "./options.ts";
import { CREATE_ENDS_MS, isUnasked, refusalOf, UNASKED_MS } from "./refusal.ts";
import type { Reservations } from "./reservations.ts";
import { shownChanged, shownGone, shownInMember, shownOnProxy, shownPrepared, shownReleased } from "./shown.ts";

type Context = ActionContext<ObjectKey>;
type Result = Promise<Shown<Observed> | undefined>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

interface ExecutorOptions extends DelegationOptions {
  readonly memories: Memories;
  /** The proxy as the host last showed it. */
  readonly proxyOf: (key: ObjectKey) => Stored<Pod> | undefined;
  readonly reservations: Reservations;
  /** Since when the proxy waits for a member; epoch ms. */
  readonly waitingSince: (key: ObjectKey) => number | undefined;
  /** A member takes pods again of a shape that it had refused, or has room that was kept for one it did not get. */
  readonly onRoom: () => void;
  /** Whether the pod's group lets it into the member at this moment. */
  readonly mayEnter: (proxyUid: string, member: string) => boolean;
  /** Annotations that say when the proxy goes if its owner shrinks. */
  readonly deletionCost: (proxyUid: string) => Readonly<Record<string, string>>;
  readonly held: HeldDelegates;
}

// A member that answers does so in less; one that does not is asked again.
const SWEEP_MS = 2_000;
/** Carries out the delegation controller's actions: its only I/O. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #exchange: Exchange;
  readonly #knownFields: KnownFields;
  /** How many creations each member has not answered yet. */
  readonly #creating = new Map<string, number>();

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#exchange = new Exchange(options);
    this.#knownFields = new KnownFields(options.clock);
  }

  /** How many delegates are being created in a member at this moment. */
  creatingIn(member: string): number {
    return this.#creating.get(member) ?? 0;
  }

  /** Does one action; the result says when the stores show it. Rejects with KubeError. */
  execute(action: Action, context: Context): Result {
    switch (action.type) {
      case "create":
        return this.#counted(action.member, () => this.#create(action, context));
      case "promise": {
        const { member, proxyUid, requests } = action;
        this.#options.reservations.promise(proxyUid, member, { requests, namespace: objectRef(context.key).namespace });
        return Promise.resolve(undefined);
      }
      case "prepare":
        return this.#prepare(action, context);
      case "delete":
        return action.surplus === true ? this.#deleteBriefly(action, context) : this.#delete(action, context);
      case "sweep":
        return this.#sweep(action, context);
      case "resolve":
        return this.#resolve(action, context);
      case "look":
        return look(action, context, { ...this.#options, exchange: this.#exchange });
      case "bind":
        return this.#bind(action, context);
      case "hold":
        return this.#hold(action, context);
      case "record":
        return this.#record(action, context);
      case "forward":
        return this.#exchange.forward(action, context);
      case "status":
        return this.#status(action, context);
      case "report":
        return this.#report(action, context);
      case "announce":
        return this.#announce(action, context);
      case "finish":
        return this.#finish(action, context);
      case "release":
        return this.#release(action, context);
      case "evict":
        return this.#evict(action, context);
      case "refuse": {
        const { proxyUid, refusal, nodesVersion } = action;
        this.#options.reservations.refuse(proxyUid, refusal, nodesVersion, this.#options.proxyOf(context.key));
        return Promise.resolve(undefined);
      }
    }
  }

  async #counted<T>(member: string, create: () => Promise<T>): Promise<T> {
    this.#creating.set(member, this.creatingIn(member) + 1);
    try {
      return await create();
    } finally {
      const rest = this.creatingIn(member) - 1;
      if (rest === 0) this.#creating.delete(member);
      else this.#creating.set(member, rest);
    }
  }

  async #status(action: ActionOf<"status">, context: Context): Result {
    const shown = await this.#exchange.status(action, context);
    const { metrics, clock, proxyOf } = this.#options;
    const member = proxyOf(context.key)?.metadata.annotations?.[CLUSTER_ANNOTATION];
    // Only names of Clusters become labels of metrics.
    if (shown !== undefined && member !== undefined && this.#member(member) !== undefined) {
      metrics?.members.observeStage("status", member, (clock.now() - context.heardAt) / 1000);
    }
    return shown;
  }

  #prepare({ member, proxyUid }: ActionOf<"prepare">, { key }: Context): Result {
    this.#options.dependencies.prepare(key, proxyUid, member);
    return Promise.resolve(shownPrepared(member));
  }

  async #create(action: ActionOf<"create">, context: Context): Result {
    const { member: name, delegate, proxyUid, parked } = action;
    const { memories, reservations, clock, proxyOf } = this.#options;
    const member = this.#member(name);
    if (member === undefined) return undefined;
    // Another pod of its group was faster, and goes elsewhere.
    if (memories.of(proxyUid).uncertain !== name && !this.#options.mayEnter(proxyUid, name)) return () => true;
    const prepared = this.#options.dependencies.prepare(context.key, proxyUid, name);
    // A copy that went since the decision is made again first, unless the delegate may be there already.
    const mayBeThere = memories.of(proxyUid).uncertain === name;
    if (!prepared && !mayBeThere) return shownPrepared(name);
    const asked = { requests: podRequests(delegate), namespace: delegate.metadata?.namespace, parked: parked === true };
    reservations.attempt(proxyUid, name, asked, proxyOf(context.key));
    try {
      const made = await member.answerOf(this.#make(member, action, context.signal));
      this.#noteDelegated(context.key, proxyUid, name);
      // Until its watch shows it: a member that is lost before that has the delegate, though its store does not.
      memories.uncertain(proxyUid, name);
      const { uid } = made.metadata;
      return shownInMember(name, (pod) => pod.metadata.uid === uid || ownerOf(pod)?.uid !== proxyUid);
    } catch (error) {
      member.noteFailure(error);
      const refused = refusalOf(error);
      if (refused === undefined && isKubeError(error, "AnswerLost", "ServerError", "BadAnswer")) {
        memories.uncertain(proxyUid, name, { at: clock.now(), message: error.detail });
        throw error;
      }
      reservations.release(proxyUid, name);
      if (isKubeError(error, "AlreadyExists")) return this.#taken(member, proxyUid, context);
      if (refused === undefined || this.#isEarly(error, proxyUid, name)) throw error;
      const proxy = proxyOf(context.key);
      // Nobody else can have it, and a refusal would be its end: it is made when the webhook is back.
      if (isUnasked(error) && proxy !== undefined && isBound(proxy) && !awaitsDelegate(proxy)) {
        this.#exchange.tellOnce(context.key, proxyUid, refused.reason, `${name}: ${refused.message}`);
        throw error;
      }
      // Admission comes before the name: what an earlier request has made, or is about to, may itself be what fills the quota.
      if (mayBeThere) {
        const { since = clock.now() } = memories.of(proxyUid).attempts.get(name) ?? {};
        const shown = await this.#find(member, proxyUid, context);
        if (shown === undefined && clock.now() < since + CREATE_ENDS_MS) throw error;
        return shown ?? this.#unmade(member, proxyUid);
      }
      // A definite no: the server has not made it, and others may have the room that was kept for it.
      this.#options.onRoom();
      memories.certain(proxyUid);
      reservations.refuse(proxyUid, { cluster: name, ...refused }, member.nodesVersion, proxyOf(context.key));
      context.log.info({ member: name, reason: refused.reason }, refused.message);
      return () => true;
    }
  }

  /** Creates the delegate in its namespace, which is made first if need be. */
  #make(
    member: Member,
    { delegate, controlled }: ActionOf<"create">,
    signal: AbortSignal,
  ): Promise<Stored<KubeObject>> {
    const { memberNamespaces } = this.#options;
    const namespace = delegate.metadata?.namespace ?? "";
    const options = { signal, dropManagedFields: true, metadataOnly: true };
    return memberNamespaces.createIn(member, namespace, signal, async () => {
      await this.#try(member, delegate, signal);
      if (!controlled) return await member.client.create(pods, delegate, options);
      const ownerReferences = await memberNamespaces.controllersOf(member, namespace);
      const owned = { ...delegate, metadata: { ...delegate.metadata, ownerReferences } };
      return await member.client.create(pods, owned, options);
    });
  }

  /** Before it is there: what has begun to run without some of its fields may not be run again elsewhere. */
  async #try(member: Member, delegate: Pod, signal: AbortSignal): Promise<void> {
    const fields = droppable(delegate.spec ?? { containers: [] });
    if (this.#knownFields.unknown(member, fields).length === 0) return;
    try {
      await tryDelegate(member, delegate, signal);
      this.#knownFields.learn(member, fields);
    } catch (error) {
      if (!isUntryable(error)) throw error;
    }
  }

  /** A webhook that does not answer may be back in a moment, unless what an earlier creation did has to be found out. */
  #isEarly(error: unknown, proxyUid: string, member: string): boolean {
    const { memories, clock } = this.#options;
    const { uncertain, attempts } = memories.of(proxyUid);
    const { since = clock.now() } = attempts.get(member) ?? {};
    return isUnasked(error) && uncertain !== member && clock.now() < since + UNASKED_MS;
  }

  /** A pod of that name is there: this proxy's after a lost answer, an earlier proxy's, or somebody else's. */
  async #taken(member: Member, proxyUid: string, { key, signal }: Context): Result {
    const { memories, clock, identity } = this.#options;
    const pod = await member.client.find(pods, objectRef(key), { signal });
    if (pod === undefined) return () => true;
    if (!madeByHost(pod, identity.id)) {
      memories.certain(proxyUid);
      const message = "a pod of that name, not made by Legation for this host, is there";
      memories.refuse(
        proxyUid,
        { cluster: member.name, reason: "NameTaken", message },
        member.nodesVersion,
        clock.now(),
      );
      return () => true;
    }
    const { uid } = pod.metadata;
    if (ownerOf(pod)?.uid === proxyUid) memories.uncertain(proxyUid, member.name);
    return shownInMember(member.name, (shown) => shown.metadata.uid === uid);
  }

  async #delete(action: ActionOf<"delete">, { key, signal }: Context): Result {
    const { member: name, uid, graceSeconds, resourceVersion } = action;
    const member = this.#member(name);
    if (member === undefined) return undefined;
    const options = {
      ...(graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    try {
      await member.client.delete(pods, objectRef(key), { uid, signal, ...options });
    } catch (error) {
      member.noteFailure(error);
      if (resourceVersion !== undefined && isKubeError(error, "Conflict")) {
        return shownChanged(name, uid, resourceVersion);
      }
      // A conflict is another pod by now, which will show, or a moment's refusal: looked at again soon.
      if (!isKubeError(error, "NotFound")) throw error;
    }
    return shownGone(name, uid, graceSeconds);
  }

  async #sweep(action: ActionOf<"sweep">, context: Context): Result {
    const { key, signal, log } = context;
    const proxy = await this.#options.host.find(pods, objectRef(key), { signal });
    // The store is behind: the proxy is there, and its events will say so.
    if (proxy?.metadata.uid === action.proxyUid) return undefined;
    if (this.#options.held.keeps(this.#member(action.member), key, action.uid, log)) return undefined;
    if (!(await this.#options.confirmLease(signal))) {
      // It may only have forgotten the proxy. The next leader knows since when.
      throw notConfirmed(action.member, "pods");
    }
    this.#options.metrics?.members.countOrphan(action.member);
    log.info({ member: action.member, uid: action.uid }, "deleting a delegate whose proxy is gone");
    const removal = { type: "delete", member: action.member, uid: action.uid } as const;
    if (proxy === undefined) return this.#delete(removal, context);
    // Another pod has the name by now, maybe in another member: it waits for nothing that this one does or does not do.
    return this.#deleteBriefly(removal, context);
  }

  /** A failure holds nothing up: what is still there is deleted again later. */
  async #deleteBriefly(action: ActionOf<"delete">, { key, signal, heardAt, log }: Context): Result {
    try {
      const briefly = AbortSignal.any([signal, AbortSignal.timeout(SWEEP_MS)]);
      await this.#delete(action, { key, signal: briefly, heardAt, log });
    } catch (error) {
      if (!isKubeError(error)) throw error;
      log.warn({ member: action.member, code: error.code }, error.message);
    }
    return undefined;
  }

  async #resolve({ member: name, proxyUid, refusal }: ActionOf<"resolve">, context: Context): Result {
    const member = this.#member(name);
    if (member === undefined) return undefined;
    const found = await this.#find(member, proxyUid, context);
    if (found !== undefined) return found;
    if (refusal !== undefined) {
      this.#options.memories.refuse(proxyUid, refusal, member.nodesVersion, this.#options.clock.now());
    }
    return this.#unmade(member, proxyUid);
  }

  /** Looks for the proxy's delegate in the member itself; undefined when it is not there. */
  async #find(member: Member, proxyUid: string, { key, signal }: Context): Result {
    const pod = await member.client.find(pods, objectRef(key), { signal });
    if (pod === undefined || ownerOf(pod)?.uid !== proxyUid) return undefined;
    return shownInMember(member.name, (shown) => shown.metadata.uid === pod.metadata.uid);
  }

  /** The member is known not to have the proxy's delegate. */
  #unmade(member: Member, proxyUid: string): Shown<Observed> {
    this.#options.reservations.unmade(proxyUid, member.name);
    return () => true;
  }

  async #bind(action: ActionOf<"bind">, { key, signal }: Context): Result {
    const { member, proxyUid, delegateUid, memberNode } = action;
    const ref = objectRef(key);
    const annotations = {
      [CLUSTER_ANNOTATION]: member,
      [DELEGATE_UID_ANNOTATION]: delegateUid,
      [MEMBER_NODE_ANNOTATION]: memberNode,
      ...this.#options.deletionCost(proxyUid),
    };
    const body = {
      apiVersion: "v1",
      kind: "Binding",
      metadata: { ...ref, uid: proxyUid, annotations },
      target: { apiVersion: "v1", kind: "Node", name: virtualNodeName(member) },
    };
    try {
      await this.#options.host.createSubresource(pods, ref, "binding", body, { signal });
      this.#noteBound(proxyUid, member);
      if (this.#options.reservations.settle(proxyUid, member, this.#options.proxyOf(key))) this.#options.onRoom();
    } catch (error) {
      // A conflict is bound already, being deleted, another pod by now, or a moment's refusal: looked at again soon.
      if (!isKubeError(error, "NotFound")) throw error;
    }
    return shownOnProxy(proxyUid, (proxy) => isBound(proxy) || isDeleting(proxy));
  }

  async #hold({ proxyUid }: ActionOf<"hold">, { key, signal }: Context): Result {
    const body = { metadata: { uid: proxyUid, finalizers: [DELEGATE_FINALIZER] } };
    return patchProxy(proxyUid, () =>
      this.#options.host.patch(
        pods,
        objectRef(key),
        { type: "strategic", body },
        { signal, dropManagedFields: true, metadataOnly: true },
      ),
    );
  }

  async #record(action: ActionOf<"record">, { key, signal }: Context): Result {
    const { proxyUid, resourceVersion, delegateUid, memberNode } = action;
    const annotations = { [DELEGATE_UID_ANNOTATION]: delegateUid, [MEMBER_NODE_ANNOTATION]: memberNode };
    const body = { metadata: { uid: proxyUid, resourceVersion, annotations } };
    const shown = await patchProxy(proxyUid, () =>
      this.#options.host.patch(pods, objectRef(key), { type: "merge", body }, { signal }),
    );
    this.#options.memories.forget(proxyUid);
    return shown;
  }

  async #report({ proxyUid, reason, message }: ActionOf<"report">, { key, signal }: Context): Result {
    const { host, memories, clock, authorEvents } = this.#options;
    const now = clock.wall();
    const conditions = [notPlacedCondition(this.#options.proxyOf(key), { reason, message, now })];
    const body = { metadata: { uid: proxyUid }, status: { conditions } };
    const shown = await patchProxy(proxyUid, () =>
      host.patch(
        pods,
        objectRef(key),
        { type: "strategic", body },
        { subresource: "status", signal, dropManagedFields: true, metadataOnly: true },
      ),
    );
    authorEvents.tell({ ...objectRef(key), uid: proxyUid }, { reason, message });
    memories.reported(proxyUid, message, clock.now());
    return shown;
  }

  #announce({ proxyUid, reason, message }: ActionOf<"announce">, { key }: Context): Result {
    this.#options.authorEvents.tell({ ...objectRef(key), uid: proxyUid }, { reason, message });
    return Promise.resolve(undefined);
  }

  async #finish({ proxyUid }: ActionOf<"finish">, { key, signal }: Context): Result {
    try {
      await this.#options.host.delete(pods, objectRef(key), { uid: proxyUid, gracePeriodSeconds: 0, signal });
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
    }
    return shownOnProxy(proxyUid, (proxy) => deletionGrace(proxy) === 0);
  }

  async #evict({ proxyUid, graceSeconds }: ActionOf<"evict">, { key, signal, log }: Context): Result {
    try {
      const options = { uid: proxyUid, gracePeriodSeconds: graceSeconds, signal };
      await this.#options.host.delete(pods, objectRef(key), options);
      log.info("deleted, as its delegate is being deleted in its member");
    } catch (error) {
      if (!isKubeError(error, "NotFound")) throw error;
    }
    return shownOnProxy(proxyUid, isDeleting);
  }

  async #release({ proxyUid }: ActionOf<"release">, { key, signal }: Context): Result {
    const body = { metadata: { uid: proxyUid, "$deleteFromPrimitiveList/finalizers": [DELEGATE_FINALIZER] } };
    const shown = await patchProxy(proxyUid, () =>
      this.#options.host.patch(
        pods,
        objectRef(key),
        { type: "strategic", body },
        { signal, dropManagedFields: true, metadataOnly: true },
      ),
    );
    return shown === undefined ? undefined : shownReleased(proxyUid);
  }

  /** Only the first attempt: what another member took before that is in its own figures. */
  #noteDelegated(key: ObjectKey, proxyUid: string, member: string): void {
    const { metrics, memories, clock } = this.#options;
    const since = this.#options.waitingSince(key);
    const { fresh, attempts } = memories.of(proxyUid);
    if (metrics === undefined || since === undefined || !fresh || attempts.size !== 1) return;
    metrics.members.observeStage("delegate", member, (clock.now() - since) / 1000);
  }

  #noteBound(proxyUid: string, member: string): void {
    const { metrics, memories, clock } = this.#options;
    const { fresh, attempts } = memories.of(proxyUid);
    const since = attempts.get(member)?.since;
    if (metrics === undefined || since === undefined || !fresh) return;
    metrics.members.observeStage("bind", member, (clock.now() - since) / 1000);
  }

  #member(name: string): Member | undefined {
    return this.#options.registry.member(name);
  }
}
