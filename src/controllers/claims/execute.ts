import {
  CLAIM_STATUS_ANNOTATION,
  CLUSTER_ANNOTATION,
  COPY_LABEL,
  COPY_LABEL_VALUE,
  HOST_LABEL,
} from "../../api/keys.ts";
import { type ObjectKey, objectRef, type PersistentVolumeClaim, type Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import { seenUid } from "../../copies/claims.ts";
import { isCopy, isLabelled } from "../../copies/copy-metadata.ts";
import { foreignMessage, NEEDED } from "../../copies/foreign-message.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { ignoring, isKubeError, isRefusal } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { persistentVolumeClaims } from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ActionContext, Expectation } from "../../runtime/controller.ts";
import type { Hold, WriteGuard } from "../../runtime/write-guard.ts";
import { neededClaim } from "../../scheduling/claim-needs.ts";
import { detailOf, inMember, makeCopy, outlast, REFUSED_FOR_MS, type WriteResult } from "../copying/writer.ts";
import type { RestoredHost } from "../restored-host.ts";
import {
  type Action,
  CLAIM_MARKS,
  claimCreationIn,
  type Observed,
  SIZE,
  sizeContent,
  uncertainCreationIn,
} from "./model.ts";
import { UncertainCreates } from "./uncertain-creates.ts";

export interface ExecutorOptions {
  readonly restoredHost: Pick<RestoredHost, "confirm">;
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "member" | "members">;
  readonly memberNamespaces: Pick<MemberNamespaces, "createIn">;
  readonly hostId: string;
  /** Holds a write that the member refuses, or that would replace a claim that was lost there. */
  readonly onRefused: (key: ObjectKey, write: string, message: string, hold: Hold) => void;
  /** The create is uncertain, and the member goes on failing. */
  readonly onUncertain: (key: ObjectKey, uid: string, member: string, message: string) => void;
  readonly onReconsidered: (key: ObjectKey) => void;
  readonly guard: WriteGuard<ObjectKey>;
  readonly clock: Pick<Clock, "now">;
}

type Context = ActionContext<ObjectKey>;
type Result = Promise<Expectation<Observed> | undefined>;
type ActionOf<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;

const UNDONE_FOR_MS = 10 * 60_000;
// An operator allows expansion of a class, or raises a quota, by hand.
const SIZE_REFUSED_FOR_MS = 10 * 60_000;
// A client of the member deleted the claim, or removed its labels, by hand.
const LOST_FOR_MS = 10 * 60_000;

/** Carries out the claim controller's writes, in members and on the host. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #guard: WriteGuard<ObjectKey>;
  readonly #uncertain: UncertainCreates;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#guard = options.guard;
    this.#uncertain = new UncertainCreates(options.clock);
  }

  forget(key: ObjectKey): void {
    this.#uncertain.forget(key);
  }

  async execute(action: Action, context: Context): Result {
    switch (action.type) {
      case "reconsider":
        this.#guard.done(context.key, action.write);
        this.#options.onReconsidered(context.key);
        return undefined;
      case "assign":
        this.#uncertain.noteGiven(context.key, action.uid, action.member);
        return await this.#annotate(action, { [CLUSTER_ANNOTATION]: action.member }, context);
      case "unassign":
        return await this.#annotate(action, { [CLUSTER_ANNOTATION]: null }, context);
      case "tell":
        return await this.#annotate(action, { [CLAIM_STATUS_ANNOTATION]: action.status }, context);
      case "create":
        return await this.#in(action.member, (member) => this.#create(member, action, context));
      case "confirmLost":
        return await this.#in(action.member, (member) => this.#confirmLost(member, action, context));
      case "mark":
        return await this.#in(action.member, (member) => this.#mark(member, action, context));
      case "grow":
        return await this.#in(action.member, (member) => this.#grow(member, action, context));
      case "sweep":
        return await this.#in(action.member, (member) => this.#sweep(member, action, context));
    }
  }

  #in(name: string, write: (member: Member) => Result): Result {
    return inMember(this.#options.registry, name, write);
  }

  async #annotate(
    { uid, ...rest }: ActionOf<"assign" | "unassign" | "tell">,
    annotations: Record<string, string | null>,
    { key, signal }: Context,
  ): Result {
    const version = "resourceVersion" in rest ? { resourceVersion: rest.resourceVersion } : {};
    const body = { metadata: { uid, ...version, annotations } };
    const options = { signal, metadataOnly: true };
    try {
      await this.#options.host.patch(persistentVolumeClaims, objectRef(key), { type: "merge", body }, options);
    } catch (error) {
      // The watch shows, or will show, that the claim changed or is gone.
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
      const before = "resourceVersion" in rest ? rest.resourceVersion : undefined;
      return ({ claim }) => claim?.metadata.uid !== uid || claim.metadata.resourceVersion !== before;
    }
    const written = Object.entries(annotations);
    return ({ claim }) =>
      claim?.metadata.uid !== uid ||
      written.every(([name, value]) => (claim.metadata.annotations?.[name] ?? null) === value);
  }

  async #create(member: Member, action: ActionOf<"create">, context: Context): Result {
    const { uid } = action;
    const { key, log } = context;
    const write = { object: key, write: claimCreationIn(member.name), member };
    const made = await outlast(this.#guard, write, () => this.#make(member, action, context));
    if (made.type === "made" || made.type === "found") {
      this.#resolve(key, uid, member.name, true);
      return shows(member, made.uid);
    }
    if (made.type === "gone") return () => true;
    const message = whyNot(
      refOf(key).name,
      made.type === "refused" || made.type === "failing" ? detailOf(made) : undefined,
    );
    // The member may have created it, so no other member gets it.
    if (this.#uncertain.mayHaveUnseen(key, uid, member.name)) {
      this.#options.onUncertain(key, uid, member.name, message);
      if (made.type === "failing") throw made.error;
      // The expectation expires if the watch shows none, and the create is retried.
      return ({ copies }) => copies.some(({ member: at }) => at === member.name);
    }
    const there = made.type === "failing" ? await this.#find(member, { uid, message }, context) : undefined;
    this.#resolve(key, uid, member.name, there !== undefined);
    if (there !== undefined) return shows(member, there);
    log.info(message);
    this.#options.onRefused(key, write.write, message, { content: uid, holdMs: REFUSED_FOR_MS });
    return () => true;
  }

  #resolve(key: ObjectKey, uid: string, member: string, isThere: boolean): void {
    this.#uncertain.resolve(key, uid, member, isThere);
    this.#guard.done(key, uncertainCreationIn(member));
  }

  async #find(
    member: Member,
    { uid, message }: { readonly uid: string; readonly message: string },
    { key, signal }: Context,
  ): Promise<string | undefined> {
    if (!this.#uncertain.mayHave(key, uid, member.name)) return undefined;
    try {
      const there = await findByList(member.client, persistentVolumeClaims, refOf(key), signal);
      return there !== undefined && isCopy(there, this.#options.hostId, persistentVolumeClaims)
        ? there.metadata.uid
        : undefined;
    } catch (error) {
      this.#options.onUncertain(key, uid, member.name, message);
      throw error;
    }
  }

  async #make(member: Member, { uid, object }: ActionOf<"create">, { key, signal }: Context): Promise<WriteResult> {
    const { memberNamespaces: namespaces, hostId } = this.#options;
    const ref = refOf(key);
    try {
      return await makeCopy({ member, namespaces, hostId, resource: persistentVolumeClaims, ref, object, signal });
    } catch (error) {
      this.#uncertain.note(key, uid, member.name, error);
      throw error;
    }
  }

  /** The watch selects by labels, and a claim that lost them still has its data. */
  async #confirmLost(member: Member, { claim }: ActionOf<"confirmLost">, { key, signal }: Context): Result {
    const ref = refOf(key);
    const there = await findByList(member.client, persistentVolumeClaims, ref, signal);
    const { hostId } = this.#options;
    const hold = { content: claim.metadata.uid, holdMs: LOST_FOR_MS };
    const onLost = (words: string): void =>
      this.#options.onRefused(key, claimCreationIn(member.name), `${neededClaim(claim)} ${words}`, hold);
    if (there === undefined) {
      onLost("was deleted there, and its data with it; delete it on the host, too, and make it anew");
      return () => true;
    }
    if (there.metadata.uid !== seenUid(claim)) {
      const words = "was deleted there, and its data with it, and another one that is not Legation's has its name";
      onLost(`${words}; delete it on the host, too, delete or rename the other one, and make it anew`);
      return () => true;
    }
    // The watch lags behind.
    if (isLabelled(there, hostId)) return ({ copies }) => copies.some(({ member: at }) => at === member.name);
    const labels = `${HOST_LABEL}=${hostId} ${COPY_LABEL}=${COPY_LABEL_VALUE}`;
    const command = `kubectl -n ${ref.namespace} label pvc ${ref.name} ${labels}`;
    onLost(`is there, with its data, but without Legation's labels; put them back there: \`${command}\``);
    return () => true;
  }

  async #mark(
    member: Member,
    { uid, annotations, labels = {} }: ActionOf<"mark">,
    { key, signal, log }: Context,
  ): Result {
    const ref = refOf(key);
    const body = { metadata: { uid, annotations, labels } };
    const options = { signal, metadataOnly: true };
    const patch = member.client.patch(persistentVolumeClaims, ref, { type: "merge", body }, options);
    const isWritten = (await ignoring(patch, "Conflict", "NotFound")) !== undefined;
    if (isWritten && this.#guard.written(key, CLAIM_MARKS, { uid }, { content: uid, holdMs: UNDONE_FOR_MS })) {
      const words = `another manager keeps changing the marks of claim ${ref.name} there`;
      log.warn({ member: member.name, namespace: ref.namespace }, `${words}: it is left so for ten minutes`);
    }
    const isMarked = (there: Stored<PersistentVolumeClaim>): boolean =>
      ownerOf(there) !== undefined &&
      Object.keys(labels).every((label) => there.metadata.labels?.[label] === undefined);
    return ({ copies }) => copies.every(({ claim }) => claim.metadata.uid !== uid || isMarked(claim));
  }

  async #grow(member: Member, { uid, size }: ActionOf<"grow">, { key, signal, log }: Context): Result {
    const body = { metadata: { uid }, spec: { resources: { requests: { storage: size } } } };
    const options = { signal, metadataOnly: true };
    try {
      await member.client.patch(persistentVolumeClaims, objectRef(key), { type: "merge", body }, options);
      this.#guard.done(key, SIZE);
    } catch (error) {
      const content = sizeContent(uid, size);
      const wasRefused = this.#guard.get(key, SIZE)?.content === content;
      if (isRefusal(error) && (wasRefused || this.#guard.failed(key, SIZE, error) !== "transient")) {
        log.info({ member: member.name, size }, `a claim was not grown: ${error.detail}`);
        this.#options.onRefused(key, SIZE, error.detail, { content, holdMs: SIZE_REFUSED_FOR_MS });
        return undefined;
      }
      if (!isKubeError(error, "NotFound")) throw error;
    }
    return undefined;
  }

  /** The version is a precondition, since an administrator may just have removed the marks to keep the data. */
  async #sweep(
    member: Member,
    { uid, resourceVersion, ownerUid }: ActionOf<"sweep">,
    { key, signal, log }: Context,
  ): Result {
    const ref = refOf(key);
    const claim = await findByList(this.#options.host, persistentVolumeClaims, ref, signal);
    // The watch lags behind the read; the expectation expires, and the key is reconciled again.
    if (claim?.metadata.uid === ownerUid) return () => false;
    await this.#options.restoredHost.confirm(member.name, "persistentvolumeclaims", signal);
    try {
      await member.client.delete(persistentVolumeClaims, ref, { uid, resourceVersion, signal });
      log.info({ member: member.name }, "the claim of a claim that is gone was deleted");
    } catch (error) {
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
    }
    const isThere = (observed: Observed): boolean =>
      observed.copies.some(
        ({ member: at, claim: { metadata } }) =>
          at === member.name && metadata.uid === uid && metadata.resourceVersion === resourceVersion,
      );
    return (observed) => !isThere(observed);
  }
}

function refOf(key: ObjectKey): { readonly namespace: string; readonly name: string } {
  const { namespace = "", name } = objectRef(key);
  return { namespace, name };
}

function whyNot(name: string, detail: string | undefined): string {
  return detail === undefined
    ? foreignMessage("PersistentVolumeClaim", name, NEEDED)
    : `its API server refused PersistentVolumeClaim ${name}${NEEDED}: ${detail}`;
}

function shows(member: Member, uid: string): Expectation<Observed> {
  return ({ copies }) => copies.some((copy) => copy.member === member.name && copy.claim.metadata.uid === uid);
}
