import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { standsFor } from "../../copies/copy-metadata.ts";
import type { CopiedKind } from "../../copies/kind.ts";
import { isKubeError } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { namespaces } from "../../kube/resources.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import type { CopyKey, CopyRef } from "./model.ts";

interface MadeCopy<T extends KubeObject> {
  readonly key: CopyKey;
  readonly ref: CopyRef;
  readonly source: Stored<T>;
  readonly uid: string;
  readonly signal: AbortSignal;
}

/** Remembers copies that clients of members deleted, and tells the sources' authors when they are made again. */
export class DeletedCopies<T extends KubeObject> {
  readonly #recorder: Pick<EventRecorder, "record">;
  readonly #deleted = new Map<CopyKey, Stored<T>>();

  constructor(recorder: Pick<EventRecorder, "record">) {
    this.#recorder = recorder;
  }

  /** A copy with an owner in the member may have been collected with it. */
  note(key: CopyKey, copy: Stored<T>): void {
    if ((copy.metadata.ownerReferences ?? []).length === 0) this.#deleted.set(key, copy);
  }

  forget(key: CopyKey): void {
    this.#deleted.delete(key);
  }

  /** Tells nothing of a copy that lost its marks for a moment, or went with its namespace. */
  async tell(member: Member, kind: CopiedKind<T>, { key, ref, source, uid, signal }: MadeCopy<T>): Promise<void> {
    const before = this.#deleted.get(key);
    this.#deleted.delete(key);
    if (before === undefined || before.metadata.uid === uid || !standsFor(before, source)) return;
    const dedupe = `${source.metadata.uid}/${ref.member}/CopyDeleted`;
    try {
      if (await isOfEarlierNamespace(member, before, signal)) return;
      const after = kind.remade && (await findByList(member.client, kind.resource, ref, signal));
      const effect = after && kind.remade?.(before, after);
      const message =
        `${ref.member}: another client there deleted ${ref.kind} ${ref.name}, and it was made again` +
        `${effect === undefined ? "" : `: ${effect}`}`;
      this.#recorder.record(referenceTo(kind.resource, source), { reason: "CopyDeleted", message, dedupe });
    } catch (error) {
      // The copy is there, which matters more.
      if (!isKubeError(error)) throw error;
    }
  }
}

/** Reports whether the copy's namespace was deleted, and made again since. */
async function isOfEarlierNamespace(
  { client }: Member,
  { metadata: { namespace = "", creationTimestamp = "" } }: Stored<KubeObject>,
  signal: AbortSignal,
): Promise<boolean> {
  if (namespace === "") return false;
  const { metadata } = await client.get(namespaces, { name: namespace }, { signal });
  return Date.parse(metadata.creationTimestamp ?? "") > Date.parse(creationTimestamp);
}
