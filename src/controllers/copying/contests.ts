import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { AppliedKind, CopiedKind } from "../../copies/kind.ts";
import type { ActionContext } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import type { WriteGuard } from "../../runtime/write-guard.ts";
import type { CopyKey, CopyRef } from "./model.ts";
import { CONTESTED_FOR_MS, COPY, type FieldOfOther, type Judged, type Judgement, versionOf } from "./requests.ts";

/** A write that the member took. */
interface Written<T extends KubeObject> {
  readonly type: "create" | "patch";
  readonly ref: CopyRef;
  readonly source: Stored<T>;
  /** The manager that had changed the copy before. */
  readonly manager?: string | undefined;
}

/** An event for the source's author. */
interface Told<T extends KubeObject> {
  readonly member: string;
  readonly source: Stored<T>;
  readonly reason: string;
  readonly words: string;
  /** Absent: the event is recorded each time. */
  readonly dedupe?: string;
}

export interface ContestsOptions {
  readonly guard: WriteGuard<CopyKey>;
  readonly recorder: Pick<EventRecorder, "record">;
}

interface Change<T extends KubeObject> {
  readonly ref: CopyRef;
  readonly source: Stored<T>;
  readonly copy: Stored<T>;
}

/** Puts back what other managers of a member change, and gives in to those that change it again and again. */
export class Contests<T extends KubeObject> {
  readonly #options: ContestsOptions;

  constructor(options: ContestsOptions) {
    this.#options = options;
  }

  /** Returns when a field that another manager took may be put back; epoch ms. Undefined if none is to be. */
  until(key: CopyKey, applied: AppliedKind<T> | undefined, copy: Stored<T>): number | undefined {
    if (applied?.restores(copy) !== true) return undefined;
    const { lost } = applied.left(copy);
    if (lost.length === 0) return undefined;
    return Math.min(...lost.map((field) => this.#options.guard.heldUntil(key, writeOf(field)) ?? 0));
  }

  /** Returns who keeps changing a copy that differs from its source, or fields of one that does not. */
  words(
    key: CopyKey,
    applied: AppliedKind<T> | undefined,
    { copy, isInStep }: { readonly copy: Stored<T> | undefined; readonly isInStep: boolean },
  ): string | undefined {
    const lost = copy === undefined ? [] : (applied?.left(copy).lost ?? []);
    const writes = [...(isInStep ? [] : [COPY]), ...lost.map(writeOf)];
    const words = writes.flatMap((write) => this.#options.guard.get(key, write)?.why ?? []);
    return words.length === 0 ? undefined : words.join("; ");
  }

  /** Decides what becomes of a field that an apply finds with another manager. */
  judge(
    key: CopyKey,
    applied: AppliedKind<T>,
    { source, copy, field: { field, manager } }: Omit<Change<T>, "ref"> & { readonly field: FieldOfOther },
  ): Judgement {
    if (!applied.wasApplied(copy, source, field)) return "givenUp";
    if (!applied.restores(copy)) return "lost";
    const hold = { holdMs: CONTESTED_FOR_MS, why: `${manager} keeps changing ${field}` };
    return this.#options.guard.contested(key, writeOf(field), hold) ? "lost" : "restored";
  }

  /** Counts the fields that an apply has put back, and tells the source's author which ones it has left. */
  settle(
    { resource, applied }: CopiedKind<T>,
    { ref: { member }, source, copy }: Change<T>,
    { restored, givenUp, lost }: Judged,
    { key, log }: ActionContext<CopyKey>,
  ): void {
    for (const { field } of restored) this.#options.guard.putBack(key, writeOf(field));
    if (restored.length > 0) log.info({ member }, `changed by others, and put back: ${wordsOf(restored)}`);
    const isFought = applied?.restores(copy) === true;
    const { givenUp: known = [], lost: taken = [] } = applied?.left(copy) ?? {};
    const left = (isFought ? givenUp : [...givenUp, ...lost]).filter(
      ({ field }) => !known.includes(field) && !taken.includes(field),
    );
    if (left.length > 0) {
      const words = `fields that another manager there owns stay as they are: ${wordsOf(left)}`;
      this.#tell(resource, { member, source, words, reason: "FieldConflict" }, log);
    }
    if (isFought && lost.length > 0) {
      const fields = wordsOf(lost);
      const words =
        `fields that another manager there keeps changing are left alone for ten minutes: ${fields}; ` +
        "name them in retain of the DelegatedType if they are that manager's";
      this.#tell(resource, { member, source, words, reason: "FieldContested", dedupe: fields }, log);
    }
  }

  /** Reports whether the copy is left alone after one more write for this version of its source. */
  isAlmostOver(key: CopyKey, source: Stored<T>): boolean {
    return this.#options.guard.isAlmostUndone(key, { version: versionOf(source) });
  }

  /** Counts a write that the member took. After too many for one version of the source, another manager undoes them. */
  written(
    { resource }: CopiedKind<T>,
    { type, ref: { member, kind, name }, source, manager = "another client" }: Written<T>,
    { key, log }: ActionContext<CopyKey>,
  ): void {
    const version = versionOf(source);
    const hold = { content: version, holdMs: CONTESTED_FOR_MS };
    if (!this.#options.guard.written(key, COPY, { version }, hold)) return;
    const why = `${manager} keeps ${type === "create" ? "deleting" : "changing"} ${kind} ${name}`;
    this.#options.guard.hold(key, COPY, "Undone", { ...hold, why });
    const words = `${why} there: the copy is left as it is for ten minutes`;
    this.#tell(resource, { member, source, words, reason: "CopyContested", dedupe: "" }, log);
  }

  #tell(
    resource: CopiedKind<T>["resource"],
    { member, source, words, reason, dedupe }: Told<T>,
    log: ActionContext<CopyKey>["log"],
  ): void {
    const message = `${member}: ${words}`;
    log.warn({ member }, message);
    const once = dedupe === undefined ? {} : { dedupe: `${source.metadata.uid}/${member}/${reason}/${dedupe}` };
    this.#options.recorder.record(referenceTo(resource, source), { reason, message, ...once });
  }
}

function writeOf(field: string): string {
  return `field ${field}`;
}

function wordsOf(fields: readonly FieldOfOther[]): string {
  return fields.map(({ field, manager }) => `${field} (${manager})`).join(", ");
}
