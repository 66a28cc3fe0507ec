import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { foreignMessage } from "../../copies/foreign-message.ts";
import type { CopiedKind } from "../../copies/kind.ts";
import { withoutAmounts } from "../../kube/messages.ts";
import type { ActionContext } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import type { Hold, WriteGuard } from "../../runtime/write-guard.ts";
import type { CopyKey, CopyRef } from "./model.ts";
import { COPY, DELETION, type RefusedRequest, versionOf } from "./requests.ts";
import { detailOf, type FailingWrite, holdFor, REFUSED_FOR_MS } from "./writer.ts";

export interface CopyRefusal {
  readonly message: string;
  /** An object of the member's own serves users in place of the copy. */
  readonly inPlace: boolean;
  /** The write may have been done all the same: its response was lost. */
  readonly isUncertain: boolean;
  readonly dedupe: string;
}

export interface CopyRefusalsOptions {
  readonly guard: WriteGuard<CopyKey, CopyRefusal>;
  readonly recorder: Pick<EventRecorder, "record">;
  /** Follows a copy's name in messages, with the users' relation to it: `, which the pod needs`. */
  readonly clause: string;
  /** Returns the effect on users in the member if a foreign object is in a copy's place. */
  readonly whenForeign?: (member: string) => string;
  /** Users that wait for the copy may have another answer. */
  readonly onChange: (ref: CopyRef) => void;
}

type Context = Pick<ActionContext<CopyKey>, "key" | "log">;

/** A copy that was refused, with its source on the host, if there is one. */
interface Refused<T extends KubeObject> {
  readonly ref: CopyRef;
  readonly source?: Stored<T>;
}

// No user waits for this one.
const IN_PLACE_FOR_MS = 10 * 60_000;
// A policy of the member may be removed at any time.
const DELETION_RETRIED = { holdMs: 5_000, maxHoldMs: 5 * 60_000 };

/** Holds the writes of copies that members refuse, and tells the sources' authors. */
export class CopyRefusals<T extends KubeObject> {
  readonly #options: CopyRefusalsOptions;

  constructor(options: CopyRefusalsOptions) {
    this.#options = options;
  }

  of(key: CopyKey): CopyRefusal | undefined {
    return this.#options.guard.get(key, COPY)?.refusal?.why;
  }

  /** Returns when a refused copy may be tried again; epoch ms. */
  until(key: CopyKey): number | undefined {
    const entry = this.#options.guard.get(key, COPY);
    return entry?.refusal === undefined ? undefined : entry.until;
  }

  /** Returns why the member refuses the copy's deletion, and when it may be tried again; epoch ms. */
  ofDeletion(key: CopyKey): { readonly message: string; readonly until: number } | undefined {
    const entry = this.#options.guard.get(key, DELETION);
    return entry?.refusal && { message: entry.refusal.why.message, until: entry.until };
  }

  /** Holds a create or patch that the member does not take. The source's name is the one that authors know. */
  refuse(
    { resource }: CopiedKind<T>,
    action: Required<Refused<T>> & { readonly type: "create" | "patch" },
    answer: RefusedRequest | FailingWrite,
    context: Context,
  ): void {
    const { type, ref, source } = action;
    const what = `${type === "patch" ? "the change of " : ""}${ref.kind} ${source.metadata.name}${this.#options.clause}`;
    const message = `its API server refused ${what}: ${detailOf(answer)}`;
    const isUncertain = type === "create" && answer.type === "failing";
    this.#hold(resource, action, { context, message, isUncertain, hold: holdFor(answer, versionOf(source)) });
  }

  /** Holds the create of a copy in whose place there is another owner's object. */
  refuseForeign(kind: CopiedKind<T>, action: Required<Refused<T>>, context: Context): void {
    const { clause, whenForeign } = this.#options;
    const { member, name } = action.ref;
    const sourceName = action.source.metadata.name;
    const effect = whenForeign === undefined ? "" : `: ${whenForeign(member)}`;
    const relation = name === sourceName ? clause : `, the name of the copy of ${sourceName}`;
    const message = `${foreignMessage(kind.resource.kind, name, relation)}${effect}`;
    const inPlace = kind.isUsedInPlace?.(name) === true;
    const holdMs = inPlace ? IN_PLACE_FOR_MS : REFUSED_FOR_MS;
    // The author may have asked for its adoption since.
    const content = kind.applied === undefined ? {} : { content: versionOf(action.source) };
    this.#hold(kind.resource, action, { context, message, inPlace, hold: { holdMs, ...content } });
  }

  /** Holds the deletion of a copy. `name`: the one that its author knows. */
  refuseDeletion(
    resource: CopiedKind<T>["resource"],
    { name, ...refused }: Refused<T> & { readonly name: string },
    answer: RefusedRequest | FailingWrite,
    context: Context,
  ): void {
    const message = `its API server refused the deletion of ${refused.ref.kind} ${name}: ${detailOf(answer)}`;
    const deletion = { write: DELETION, reason: "DeletionRefused", hold: DELETION_RETRIED };
    this.#hold(resource, refused, { context, message, ...deletion });
  }

  /** Tells the source's author, too: running users may have what the source was before. */
  #hold(
    resource: CopiedKind<T>["resource"],
    { ref, source }: Refused<T>,
    {
      context: { key, log },
      message,
      inPlace = false,
      isUncertain = false,
      write = COPY,
      reason = "NotInMember",
      hold,
    }: {
      readonly context: Context;
      readonly message: string;
      readonly inPlace?: boolean;
      readonly isUncertain?: boolean;
      readonly write?: string;
      readonly reason?: string;
      readonly hold: Hold;
    },
  ): void {
    const { guard, recorder, onChange } = this.#options;
    const why = { message, inPlace, isUncertain, dedupe: withoutAmounts(message) };
    const isNews = guard.refuse(key, write, why, hold);
    onChange(ref);
    if (!isNews || inPlace) return;
    log.warn({ member: ref.member }, message);
    if (source === undefined) return;
    recorder.record(referenceTo(resource, source), { reason, message: `${ref.member}: ${message}` });
  }
}
