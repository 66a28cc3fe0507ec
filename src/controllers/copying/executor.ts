import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { MemberNamespaces } from "../../clusters/namespaces.ts";
import type { Registry } from "../../clusters/registry.ts";
import { lacksKeys } from "../../copies/copy-metadata.ts";
import { type CopiedKind, copyPatch, toCopy } from "../../copies/kind.ts";
import { ownedKeys } from "../../copies/owned-keys.ts";
import { isKubeError, isRefusal, type KubeError, mayBeStarting } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ActionContext, Expectation } from "../../runtime/controller.ts";
import type { HoldReason } from "../../runtime/held-writes.ts";
import { isTransient, WriteGuard } from "../../runtime/write-guard.ts";
import { isUntryable } from "../try-delegate.ts";
import { Contests } from "./contests.ts";
import { DeletedCopies } from "./deleted-copies.ts";
import { lastOtherManager } from "./field-owners.ts";
import { type Action, type CopyKey, type CopyRef, copyKey, copyRef, type Observed } from "./model.ts";
import { type CopyRefusal, CopyRefusals, type CopyRefusalsOptions } from "./refusals.ts";
import { ANSWER, type Changed, COPY, DELETION, versionOf } from "./requests.ts";
import { CopyWriter, type FailingWrite, inMember, refusedFields, type WriteResult } from "./writer.ts";

export interface ExecutorOptions<T extends KubeObject> extends Omit<CopyRefusalsOptions, "guard"> {
  readonly kinds: ReadonlyMap<string, CopiedKind<T>>;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "member">;
  readonly memberNamespaces: Pick<MemberNamespaces, "createIn">;
  readonly isSameContent: (kind: string, copy: Stored<T>, source: Stored<T>) => boolean;
  /** Runs before a copy is deleted. Returns for how long it stays instead; ms. Rejects with KubeError. */
  readonly beforeDelete?: (
    member: Member,
    ref: CopyRef,
    deletion: { readonly copy: Stored<T>; readonly signal: AbortSignal },
  ) => Promise<number | undefined>;
  readonly clock: Pick<Clock, "now">;
}

type Context = ActionContext<CopyKey>;
type ActionOf<T extends KubeObject, Type extends Action<T>["type"]> = Extract<Action<T>, { readonly type: Type }>;

// A patch that the member stored, and that left a difference: an older API server does not know every field.
const STORED = "stored";
const NO_EFFECT_FOR_MS = 24 * 60 * 60_000;

/** Carries out the copier's writes, and remembers which are refused, without effect or undone. */
export class CopyExecutor<T extends KubeObject> {
  readonly refusals: CopyRefusals<T>;
  readonly #options: ExecutorOptions<T>;
  readonly #guard: WriteGuard<CopyKey, CopyRefusal>;
  readonly #writer: CopyWriter<CopyKey>;
  readonly #contests: Contests<T>;
  readonly #deleted: DeletedCopies<T>;
  /** Names this host among the managers of a copy's fields. */
  readonly #fieldManager: string;
  /** Errors of writes that failed last, and may pass by themselves. */
  readonly #failing = new Map<CopyKey, string>();
  /** Deadlines until which copies stay for users that the host does not know; epoch ms. */
  readonly #kept = new Map<CopyKey, number>();

  constructor(options: ExecutorOptions<T>) {
    this.#options = options;
    const { clock, memberNamespaces, identity, onChange, recorder } = options;
    this.#fieldManager = `legation-${identity.id}`;
    this.#guard = new WriteGuard({ clock });
    this.refusals = new CopyRefusals({ ...options, guard: this.#guard });
    this.#contests = new Contests({ guard: this.#guard, recorder });
    this.#deleted = new DeletedCopies(recorder);
    this.#writer = new CopyWriter<CopyKey>({
      memberNamespaces,
      hostId: identity.id,
      guard: this.#guard,
      clock,
      onStays: (key) => onChange(copyRef(key)),
    });
  }

  /** Returns why the last write of the copy failed, though the next one may succeed. */
  failing(key: CopyKey): string | undefined {
    return this.#failing.get(key);
  }

  /** Returns epoch ms. */
  held(
    key: CopyKey,
    source: Stored<T>,
    copy: Stored<T> | undefined,
  ): { readonly reason: HoldReason; readonly until: number } | undefined {
    const until = this.#guard.heldUntil(key, COPY, versionOf(source));
    if (until !== undefined) return { reason: this.#guard.get(key, COPY)?.reason ?? "Refused", until };
    if (copy === undefined) return undefined;
    const storedUntil = this.#guard.heldUntil(key, STORED, storedContent(source, copy.metadata.resourceVersion));
    return storedUntil === undefined ? undefined : { reason: "NoEffect", until: storedUntil };
  }

  /** Returns when a field that another manager took may be put back; epoch ms. Undefined if none is to be. */
  contestedUntil(ref: CopyRef, copy: Stored<T>): number | undefined {
    return this.#contests.until(copyKey(ref), this.#options.kinds.get(ref.kind)?.applied, copy);
  }

  /** Returns who keeps changing or deleting the copy, which is left alone for a while. */
  contestedBy(ref: CopyRef, copy: Stored<T> | undefined, isInStep: boolean): string | undefined {
    return this.#contests.words(copyKey(ref), this.#options.kinds.get(ref.kind)?.applied, { copy, isInStep });
  }

  onGone(ref: CopyRef, copy: Stored<T>): void {
    const key = copyKey(ref);
    if (!this.isLeaving(key, copy)) this.#deleted.note(key, copy);
  }

  /** Returns until when the copy stays for users that the host does not know; epoch ms. */
  keptUntil(key: CopyKey): number | undefined {
    const until = this.#kept.get(key);
    return until !== undefined && this.#options.clock.now() < until ? until : undefined;
  }

  /** Reports whether the copy's deletion was sent, and may still happen. */
  isLeaving(key: CopyKey, copy: Stored<T>): boolean {
    return this.#writer.isLeaving(key, copy);
  }

  /** Returns when creates of the copy without a plain answer have surely ended; epoch ms. Undefined if they have. */
  createsEndAt(key: CopyKey): number | undefined {
    return this.#writer.unsettled.endAt(key);
  }

  /** Reports whether there was a refusal. */
  reconsider(key: CopyKey): boolean {
    const isRefused = this.refusals.of(key) !== undefined || this.refusals.ofDeletion(key) !== undefined;
    // A series of failures goes on.
    this.#guard.forget(key);
    return isRefused;
  }

  /** Reports whether users were told anything of the copy. */
  forget(key: CopyKey): boolean {
    const wasReported = this.#guard.get(key, COPY) !== undefined || this.refusals.ofDeletion(key) !== undefined;
    this.#guard.forget(key);
    this.#writer.forget(key);
    this.#deleted.forget(key);
    this.#kept.delete(key);
    this.#failing.delete(key);
    return wasReported;
  }

  async execute(action: Action<T>, context: Context): Promise<Expectation<Observed<T>> | undefined> {
    try {
      const expectation = await this.#write(action, context);
      this.#failing.delete(context.key);
      return expectation;
    } catch (error) {
      if (action.type !== "delete" && isTransient(error) && this.#failing.get(context.key) !== error.detail) {
        this.#failing.set(context.key, error.detail);
        this.#options.onChange(action.ref);
      }
      throw error;
    }
  }

  #write(action: Action<T>, context: Context): Promise<Expectation<Observed<T>> | undefined> {
    return inMember(this.#options.registry, action.ref.member, async (member) => {
      const kind = this.#options.kinds.get(action.ref.kind);
      if (kind === undefined) return undefined;
      switch (action.type) {
        case "create":
          return this.#create(member, kind, { action, context });
        case "patch":
          return this.#patch(member, kind, { action, context });
        case "delete":
          return this.#delete(member, kind, { action, context });
        case "reconsider":
          if (this.reconsider(context.key)) this.#options.onChange(action.ref);
          return () => true;
      }
    });
  }

  /**
   * Tries to create a copy without making it, and reports whether the member takes it. A refusal counts as that of a create; any
   * other failure does not tell.
   */
  async isTaken(ref: CopyRef, source: Stored<T>, { signal, log }: Pick<Context, "signal" | "log">): Promise<boolean> {
    const kind = this.#options.kinds.get(ref.kind);
    if (kind === undefined) return true;
    const error = await inMember(this.#options.registry, ref.member, (member) =>
      refusalOfTrial(member, kind, toCopy(kind, source, this.#options.identity), signal),
    );
    if (error === undefined || kind.fallback?.(refusedFields({ type: "refused", error })) !== undefined) return true;
    const action = { type: "create", ref, source } as const;
    const context = { key: copyKey(ref), log };
    if (error.code === "AlreadyExists") {
      this.refusals.refuseForeign(kind, action, context);
      return false;
    }
    this.refusals.refuse(kind, action, { type: "refused", error }, context);
    return false;
  }

  async #create(
    member: Member,
    kind: CopiedKind<T>,
    { action, context }: { readonly action: ActionOf<T, "create">; readonly context: Context },
  ): Promise<Expectation<Observed<T>>> {
    const { ref, source } = action;
    const { key, signal } = context;
    const { resource, fallback } = kind;
    let object = toCopy(kind, source, this.#options.identity);
    const fieldManager = kind.applied && this.#fieldManager;
    const adoptionMarks = kind.applied?.adoptionMarks(source);
    let made: WriteResult | FailingWrite = await this.#writer.make(key, {
      member,
      resource,
      ref,
      object,
      fieldManager,
      adoptionMarks,
      signal,
    });
    const leftOut: string[] = [];
    while (made.type === "refused") {
      const fields = refusedFields(made).filter((field) => !leftOut.includes(field));
      const less = fallback?.(fields);
      if (less === undefined) break;
      leftOut.push(...fields);
      object = less.object(object);
      made = await this.#writer.make(key, { member, resource, ref, object, signal });
    }
    switch (made.type) {
      case "made":
      case "found": {
        const { type, uid } = made;
        if (type === "made") this.#contests.written(kind, action, context);
        else this.#guard.done(key, COPY);
        await this.#deleted.tell(member, kind, { key, ref, source, uid, signal });
        return ({ copy }) => copy?.metadata.uid === uid;
      }
      case "gone":
        return () => true;
      case "foreign":
        this.refusals.refuseForeign(kind, action, context);
        return () => true;
      case "refused":
      case "failing":
        this.refusals.refuse(kind, action, made, context);
        return () => true;
    }
  }

  async #patch(
    member: Member,
    kind: CopiedKind<T>,
    { action, context }: { readonly action: ActionOf<T, "patch">; readonly context: Context },
  ): Promise<Expectation<Observed<T>> | undefined> {
    const { ref, copy, source } = action;
    const { key, signal } = context;
    const { identity: host, isSameContent } = this.#options;
    const { resource, fallback } = kind;
    const { resourceVersion } = copy.metadata;
    const { applied } = kind;
    const fieldManager = this.#fieldManager;
    // The write removes the last trace of a manager whose fields it changes.
    const manager = this.#contests.isAlmostOver(key, source)
      ? await lastOtherManager({ member, resource, ref, fieldManager, signal })
      : undefined;
    const isNamed = applied !== undefined || !lacksKeys(copy);
    const owned = isNamed
      ? undefined
      : ownedKeys(await findByList(member.client, resource, ref, signal), this.#fieldManager);
    const patch =
      applied === undefined
        ? copyPatch(kind, copy, { source, host, sameContent: isSameContent(ref.kind, copy, source) }, owned)
        : [];
    let changed: Changed | FailingWrite =
      applied === undefined
        ? await this.#writer.change(key, { member, resource, ref, patch, signal })
        : await this.#writer.apply(key, {
            member,
            resource,
            ref,
            signal,
            fieldManager,
            isNew: applied.isNew(copy),
            newlyRetained: applied.newlyRetained(copy),
            judge: (field) => this.#contests.judge(key, applied, { source, copy, field }),
            object: (left) => applied.object(copy, { source, host, left }),
          });
    const less = changed.type === "refused" ? fallback?.(refusedFields(changed)) : undefined;
    if (less !== undefined) {
      changed = await this.#writer.change(key, { member, resource, ref, patch: [...patch, ...less.patch], signal });
    }
    if (changed.type === "refused" || changed.type === "failing") {
      this.refusals.refuse(kind, action, changed, context);
      return () => true;
    }
    if (changed.type === "changed") {
      const { judged } = changed;
      if (judged !== undefined) this.#contests.settle(kind, action, judged, context);
      const content = storedContent(source, changed.resourceVersion);
      this.#guard.hold(key, STORED, "NoEffect", { content, holdMs: NO_EFFECT_FOR_MS });
      this.#contests.written(kind, { ...action, manager }, context);
      if (changed.resourceVersion === resourceVersion) return undefined;
    }
    // An apply may be two writes, and the store may show the first of them alone.
    const isShown = (shown: Stored<T> | undefined): boolean =>
      shown === undefined ||
      applied === undefined ||
      (!applied.isNew(shown) && applied.newlyRetained(shown).length === 0);
    return ({ copy: shown }) => shown?.metadata.resourceVersion !== resourceVersion && isShown(shown);
  }

  async #delete(
    member: Member,
    { resource, propagationPolicy }: CopiedKind<T>,
    { action, context }: { readonly action: ActionOf<T, "delete">; readonly context: Context },
  ): Promise<Expectation<Observed<T>>> {
    const { ref, copy, onHost } = action;
    const { key, signal } = context;
    const { beforeDelete, clock, onChange } = this.#options;
    const keptForMs = await beforeDelete?.(member, ref, { copy, signal });
    if (keptForMs !== undefined) {
      this.#kept.set(key, clock.now() + keptForMs);
      onChange(ref);
      return () => true;
    }
    const { resourceVersion } = copy.metadata;
    const refused = await this.#writer.delete(key, { member, resource, copy, signal, propagationPolicy });
    if (refused === undefined) {
      this.#guard.done(key, DELETION);
      return ({ copy: shown }) => shown?.metadata.resourceVersion !== resourceVersion;
    }
    const { name } = onHost?.metadata ?? copy.metadata;
    const told = { ref, name, ...(onHost === undefined ? {} : { source: onHost }) };
    this.refusals.refuseDeletion(resource, told, refused, context);
    return () => true;
  }
}

/** Returns why the member would refuse the create: nothing that is made before it, and nothing that only the create itself tells. */
async function refusalOfTrial<T extends KubeObject>(
  member: Member,
  { resource }: CopiedKind<T>,
  object: T,
  signal: AbortSignal,
): Promise<KubeError | undefined> {
  try {
    await member.answerOf(member.client.create(resource, object, { ...ANSWER, signal, dryRun: true }));
    return undefined;
  } catch (error) {
    if (isKubeError(error, "AlreadyExists")) return error;
    return isRefusal(error) && !isUntryable(error) && !mayBeStarting(error) ? error : undefined;
  }
}

/** The versions of source and copy between which a stored patch left a difference. */
function storedContent(source: Stored<KubeObject>, copyVersion: string): string {
  return `${versionOf(source)}/${copyVersion}`;
}
