import { type ObjectKey, objectRef, type Pod, type Stored } from "../../../api/kubernetes.ts";
import type { Member } from "../../../clusters/member.ts";
import { isKubeError, isNamespaceTerminating, type KubeError } from "../../../kube/errors.ts";
import { unknownFieldOf } from "../../../kube/messages.ts";
import { CREATE_ENDS_MS } from "../../../kube/request-ends.ts";
import { pods } from "../../../kube/resources.ts";
import { isPreparedIn } from "../../../placement/needs.ts";
import { podRequests } from "../../../placement/requests.ts";
import { madeByHost, ownerOf } from "../../../pods/delegate.ts";
import { droppable } from "../../../pods/dropped-fields.ts";
import type { Expectation } from "../../../runtime/controller.ts";
import { MemberCounts } from "../../../scheduling/member-counts.ts";
import type { Memories } from "../../../scheduling/memories.ts";
import { DELEGATE_MARKS, delegateCreationIn, refusedCreationIn } from "../../../scheduling/memory.ts";
import type { MadeDelegate, Reservations } from "../../../scheduling/reservations.ts";
import type { BackoffGrowth } from "../../../scheduling/retries/backoff.ts";
import type { Retries } from "../../../scheduling/retries/retries.ts";
import {
  isOfAllAlike,
  isOfItsPlace,
  isOfQuota,
  lackedKind,
  leavesUncertain,
  mayQuotaLag,
  type PodRefusal,
  passingRefusalOf,
  refusalOf,
} from "../../api-refusal.ts";
import { isUntryable, tryDelegate } from "../../try-delegate.ts";
import type { ActionOf } from "../decision/decision.ts";
import { isBoundWithDelegate } from "../decision/delegates.ts";
import type { View } from "../decision/view.ts";
import type { ActionOptions, ActionState, Context, Result } from "../options.ts";
import { expectInMember, expectPrepared } from "./expectations.ts";
import { findDelegate, mark } from "./restore-delegate-marks.ts";
import { SupportedFields } from "./supported-fields.ts";

// Leaves room in the event's message, which has 1024 bytes.
const MOST_FIELDS = 8;

interface Failed {
  readonly error: KubeError;
  readonly refused: PodRefusal;
  /** The refusal, if its cause may end within moments whatever pod is created. Undefined otherwise. */
  readonly passing: PodRefusal | undefined;
}

/** A create that was sent. `mayBeThere`: an earlier one is uncertain. */
interface Sent {
  readonly action: ActionOf<"create">;
  readonly member: Member;
  readonly delegate: Pod;
  readonly mayBeThere: boolean;
}

interface CreateHooks {
  /** Called when the create itself fails, and not a request before it. */
  readonly onFailure: (error: unknown) => void;
  readonly isWanted: () => boolean;
  readonly onStored: (made: MadeDelegate) => void;
}

/** Creates delegates. While a create is uncertain, no other member gets the pod. */
export class Creation {
  readonly #options: ActionOptions;
  readonly #state: ActionState;
  readonly #memories: Memories;
  readonly #reservations: Reservations;
  readonly #retries: Retries;
  readonly #supportedFields: SupportedFields;
  /** Creates in flight, by the pods' keys. */
  readonly #under = new MemberCounts();

  constructor(options: ActionOptions, state: ActionState) {
    this.#options = options;
    this.#state = state;
    const { memories, reservations, retries } = state.placementState;
    this.#memories = memories;
    this.#reservations = reservations;
    this.#retries = retries;
    this.#supportedFields = new SupportedFields(options.clock);
  }

  under(member: string): number {
    return this.#under.counts.get(member) ?? 0;
  }

  /** Creates a delegate, unless what it needs has gone since the decision. */
  async create(action: ActionOf<"create">, context: Context): Result {
    this.#under.move(context.key, action.member);
    try {
      return await this.#create(action, context);
    } finally {
      this.#under.move(context.key, undefined);
    }
  }

  async confirmCreated({ member: name, proxyUid, refusal }: ActionOf<"confirmCreated">, context: Context): Result {
    const member = this.#options.registry.member(name);
    if (member === undefined) return undefined;
    const found = await this.#find(member, proxyUid, context);
    if (found !== undefined) return found;
    if (refusal !== undefined) {
      this.#retries.refuse(proxyUid, refusal, { nodesVersion: member.nodesVersion });
    }
    return this.#unmade(member, proxyUid);
  }

  async #find(member: Member, proxyUid: string, context: Context): Result {
    const pod = await findDelegate(member, proxyUid, context);
    return pod && expectInMember(member.name, (shown) => shown.metadata.uid === pod.metadata.uid);
  }

  #unmade(member: Member, proxyUid: string): Expectation<View> {
    this.#reservations.unmade(proxyUid, member.name);
    this.#options.events.emit("roomFreed");
    return () => true;
  }

  async #create(action: ActionOf<"create">, context: Context): Result {
    const { member: name, proxyUid, parked } = action;
    const { registry, identity, events, clock } = this.#options;
    const { placementState, proxies, waiting } = this.#state;
    const [memories, reservations] = [this.#memories, this.#reservations];
    const member = registry.member(name);
    const delegate = member && placementState.delegateIn(context.key, proxyUid, member.candidate(), identity);
    if (member === undefined || delegate === undefined) return undefined;
    // Another pod of the group was faster, and the group goes elsewhere.
    if (memories.of(proxyUid).uncertain !== name && !placementState.groups.mayEnter(proxyUid, name)) return () => true;
    const prepared = this.#options.preparer.prepare(context.key, proxyUid, name);
    // A copy that went since the decision is made again first, unless the delegate may exist already.
    const mayBeThere = memories.of(proxyUid).uncertain === name;
    if (!prepared && !mayBeThere) return expectPrepared(name);
    const { namespace = "" } = delegate.metadata ?? {};
    const asked = { requests: podRequests(delegate), namespace, parked: parked === true };
    const proxy = proxies.get(context.key);
    const learnt = reservations.learntIn(name, proxy);
    if (reservations.attempt(proxyUid, name, asked, proxy)) events.emit("roomFreed");
    placementState.groups.hold(proxyUid, name);
    let ofCreation: unknown;
    let isOutdated = false;
    const hooks: CreateHooks = {
      onFailure: (error) => {
        ofCreation = error;
      },
      // A burst waits for its turn: the answers to the first creates tell what the member makes of the others.
      isWanted: () => {
        isOutdated =
          !mayBeThere && !isConfined(proxy) && reservations.learntIn(name, proxy)?.mutation !== learnt?.mutation;
        return !isOutdated;
      },
      onStored: (made) => {
        if (reservations.noteStored(proxyUid, name, proxy, made)) events.emit("roomFreed");
      },
    };
    try {
      const made = await this.#make(member, delegate, action, context, hooks);
      if (made === undefined) {
        if (!mayBeThere) reservations.release(proxyUid, name);
        return expectPrepared(name);
      }
      this.#noteDelegated(context.key, proxyUid, name);
      const { uid } = made.metadata;
      // Until the watch shows it: a member that is lost before that has the delegate.
      memories.noteMade(proxyUid, name, uid);
      this.#options.refusedWrites.over(context.key, proxyUid, "create");
      waiting.quotas.accepted({ member: name, namespace }, proxyUid);
      return expectInMember(name, (pod) => pod.metadata.uid === uid || ownerOf(pod)?.uid !== proxyUid);
    } catch (error) {
      if (isOutdated) {
        memories.noteUnplaced(proxyUid);
        return this.#unmade(member, proxyUid);
      }
      member.noteFailure(error);
      // The requests before the create (namespace, dry run) make no delegate, however they fail.
      const mayBeMade = mayBeThere || error === ofCreation;
      if (mayBeMade && leavesUncertain(error)) {
        memories.noteUncertain(proxyUid, name, { at: clock.now(), message: error.detail });
        throw error;
      }
      reservations.release(proxyUid, name);
      if (isKubeError(error, "AlreadyExists")) return this.#handleNameTaken(member, proxyUid, context);
      return this.#handleFailure(error, { action, member, delegate, mayBeThere }, context);
    }
  }

  /** Notes a refusal of the member. Throws while the same create may still succeed. */
  async #handleFailure(error: unknown, sent: Sent, context: Context): Result {
    const { action, member, delegate, mayBeThere } = sent;
    const { proxyUid } = action;
    const proxy = this.#state.proxies.get(context.key);
    const lack = this.#lackOf(error, delegate, action, context.key);
    if (lack === "awaited") return expectPrepared(member.name);
    const passing = passingRefusalOf(error) ?? (lack === "seen late" ? refusalOf(error) : undefined);
    const refused = passing ?? refusalOf(error);
    if (!isKubeError(error) || refused === undefined) throw error;
    const failed = { error, refused, passing };
    if (isConfined(proxy)) this.#retryBoundPod(action, member, failed, context.key);
    else if (passing !== undefined && this.#isEarly(proxyUid, member)) throw error;
    // Admission runs before the name is checked: the earlier create itself may fill the quota.
    if (mayBeThere) return this.#findEarlier(error, member, proxyUid, context);
    this.#refuse(sent, failed, context);
    return () => true;
  }

  async #findEarlier(error: KubeError, member: Member, proxyUid: string, context: Context): Result {
    const { clock } = this.#options;
    const { since = clock.now() } = this.#memories.of(proxyUid).attempts[member.name] ?? {};
    const expectation = await this.#find(member, proxyUid, context);
    if (expectation === undefined && clock.now() < since + CREATE_ENDS_MS) throw error;
    return expectation ?? this.#unmade(member, proxyUid);
  }

  #refuse({ action, member, delegate }: Sent, { error, refused, passing }: Failed, { key, log }: Context): void {
    const { proxyUid } = action;
    const { name, nodesVersion } = member;
    const { namespace = "" } = delegate.metadata ?? {};
    this.#options.events.emit("roomFreed");
    this.#memories.noteAbsent(proxyUid);
    const isShared = isOfAllAlike(error);
    const growth = passing !== undefined && isShared ? "steady" : growthAfter(error, member, namespace);
    const pod = this.#state.proxies.get(key);
    const sharedBy = isShared ? "spec" : undefined;
    this.#retries.refuse(proxyUid, { cluster: name, ...refused }, { nodesVersion, pod, sharedBy, growth });
    if (isOfQuota(error.detail)) this.#state.waiting.quotas.refused({ member: name, namespace }, proxyUid, key);
    log.info({ member: name, reason: refused.reason }, refused.message);
  }

  /** Creates the delegate, and its namespace if need be. Returns undefined if that was new, and so lacks copies that the pod needs. */
  #make(
    member: Member,
    delegate: Pod,
    { controlled, proxyUid }: ActionOf<"create">,
    { key, signal }: Context,
    { onFailure, isWanted, onStored }: CreateHooks,
  ): Promise<Stored<Pod> | undefined> {
    const { memberNamespaces } = this.#options;
    const namespace = delegate.metadata?.namespace ?? "";
    const create = async (pod: Pod): Promise<Stored<Pod>> => {
      const dropped: string[] = [];
      const onWarning = (text: string): void => {
        const field = unknownFieldOf(text);
        if (field !== undefined) dropped.push(field);
      };
      try {
        const options = { signal, dropManagedFields: true, isWanted, onWarning };
        const made = await member.client.create(pods, pod, options);
        onStored({ sent: pod, stored: made });
        if (dropped.length > 0) this.#tellDropped(member, proxyUid, key, dropped);
        return made;
      } catch (error) {
        onFailure(error);
        throw error;
      }
    };
    return memberNamespaces.createIn(member, namespace, signal, async (isNew) => {
      if (isNew && !this.#prepareAgain(key, proxyUid, member.name)) return undefined;
      await this.#try(member, delegate, signal);
      if (!controlled) return await create(delegate);
      const ownerReferences = await memberNamespaces.controllersOf(member, namespace, signal);
      return await create({ ...delegate, metadata: { ...delegate.metadata, ownerReferences } });
    });
  }

  /** Tells the author which fields the delegate lacks: the member's API server is older than the host's, say. */
  #tellDropped({ name }: Member, proxyUid: string, key: ObjectKey, fields: readonly string[]): void {
    const shown = fields.length > MOST_FIELDS ? [...fields.slice(0, MOST_FIELDS), "…"] : fields;
    const message = `${name}: its API server does not know ${shown.join(", ")}, so the pod runs there without; a newer Kubernetes there may know it`;
    const dedupe = `${proxyUid} FieldsDropped ${name}`;
    this.#options.recorder.record({ ...objectRef(key), uid: proxyUid }, { reason: "FieldsDropped", message, dedupe });
  }

  /** Starts copying what the API server misses. `awaited`: not all copies are there. `seen late`: the API server's cache lags. */
  #lackOf(
    error: unknown,
    delegate: Pod,
    { member, proxyUid }: ActionOf<"create">,
    key: ObjectKey,
  ): "awaited" | "seen late" | undefined {
    const kind = lackedKind(error);
    if (kind === undefined) return undefined;
    const isThere = this.#options.preparer.onMissing?.(delegate, member, kind) === true;
    if (!this.#prepareAgain(key, proxyUid, member)) return "awaited";
    return isThere ? "seen late" : undefined;
  }

  /** Starts copying to the member what the pod needs and the member lacks. Reports whether nothing is missing. */
  #prepareAgain(key: ObjectKey, proxyUid: string, member: string): boolean {
    const { preparer } = this.#options;
    const proxy = this.#state.proxies.get(key);
    if (!preparer.prepare(key, proxyUid, member)) return false;
    return proxy?.metadata.uid !== proxyUid || isPreparedIn(preparer.needs(proxy), member);
  }

  async #try(member: Member, delegate: Pod, signal: AbortSignal): Promise<void> {
    const fields = droppable(delegate.spec ?? { containers: [] });
    if (this.#supportedFields.unknown(member, fields).length === 0) return;
    try {
      await tryDelegate(member, delegate, signal);
      this.#supportedFields.learn(member, fields);
    } catch (error) {
      if (!isUntryable(error)) throw error;
    }
  }

  /** Throws while the create of a bound pod may still succeed: the member may still count the earlier delegate. */
  #retryBoundPod({ proxyUid }: ActionOf<"create">, member: Member, why: Failed, key: ObjectKey): void {
    const { error, refused, passing } = why;
    // Other pods of its shape must not wait for this one: it may be tried for long.
    if (this.#retries.abandon(proxyUid)) this.#options.events.emit("roomFreed");
    const isEndless = passing !== undefined || isOfItsPlace(error);
    // Refusals are counted apart: earlier failures of other kinds do not make one lasting.
    if (this.#isEarly(proxyUid, member, isEndless ? undefined : refusedCreationIn(member.name))) throw error;
    if (!isEndless) return;
    const words = { reason: refused.reason, message: `${member.name}: ${refused.message}` };
    this.#options.refusedWrites.tell(key, proxyUid, "create", words);
    throw error;
  }

  /** Reports whether the cause may still pass, unless an earlier create is uncertain. */
  #isEarly(proxyUid: string, { name, reachableSince }: Member, write = delegateCreationIn(name)): boolean {
    const memories = this.#memories;
    return memories.writes.mayPass(proxyUid, write, reachableSince) && memories.of(proxyUid).uncertain !== name;
  }

  /** A pod of that name exists: this proxy's after a lost response, an earlier proxy's, or a foreign one. */
  async #handleNameTaken(member: Member, proxyUid: string, context: Context): Result {
    const { identity, events } = this.#options;
    const pod = await member.client.find(pods, objectRef(context.key), { signal: context.signal });
    if (pod === undefined) return () => true;
    if (!madeByHost(pod, identity.id)) {
      if (this.#isOurs(pod, proxyUid)) return this.#restoreDelegateMarks(member, proxyUid, pod, context);
      const message = "a pod of that name, not made by Legation for this host, is there";
      const refusal = { cluster: member.name, reason: "NameTaken", message } as const;
      this.#memories.noteAbsent(proxyUid);
      this.#retries.refuse(proxyUid, refusal, { nodesVersion: member.nodesVersion });
      events.emit("roomFreed");
      return () => true;
    }
    const { uid } = pod.metadata;
    if (ownerOf(pod)?.uid === proxyUid) this.#memories.noteUncertain(proxyUid, member.name);
    return expectInMember(member.name, (shown) => shown.metadata.uid === uid);
  }

  #isOurs(pod: Stored<Pod>, proxyUid: string): boolean {
    return pod.metadata.uid === this.#memories.of(proxyUid).made || ownerOf(pod)?.uid === proxyUid;
  }

  #restoreDelegateMarks(member: Member, proxyUid: string, { metadata }: Stored<Pod>, context: Context): Result {
    const memories = this.#memories;
    memories.noteUncertain(proxyUid, member.name);
    if (!memories.writes.mayWrite(proxyUid, DELEGATE_MARKS)) return Promise.resolve(() => false);
    return mark(member, { proxyUid, delegateUid: metadata.uid }, context, { ...this.#options, memories });
  }

  /** Measures the first attempt only: later ones wait for other members. */
  #noteDelegated(key: ObjectKey, proxyUid: string, member: string): void {
    const { metrics, clock } = this.#options;
    const since = this.#state.waiting.since(key);
    const { fresh, attempts } = this.#memories.of(proxyUid);
    if (metrics === undefined || since === undefined || !fresh || Object.keys(attempts).length !== 1) return;
    metrics.members.observeStage("delegate", member, (clock.now() - since) / 1000);
  }
}

function isConfined(proxy: Stored<Pod> | undefined): boolean {
  return proxy !== undefined && isBoundWithDelegate(proxy);
}

function growthAfter(error: KubeError, { delegates }: Member, namespace: string): BackoffGrowth {
  // The namespace is made again afterwards, but a pod that can go elsewhere need not wait.
  if (isNamespaceTerminating(error)) return "steady";
  return mayQuotaLag(error.detail, delegates.endedLately(namespace)) ? "brief" : "growing";
}
