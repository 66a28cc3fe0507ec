import { WHOLE_FINALIZER } from "../../api/keys.ts";
import type { KubeObject, ObjectKey, ObjectMeta, Stored } from "../../api/kubernetes.ts";
import type { Registry } from "../../clusters/registry.ts";
import { type CopiedKind, toCopy } from "../../copies/kind.ts";
import type { ClusterClient, Patch, WriteOptions } from "../../kube/client.ts";
import { isKubeError, isLastingRefusal } from "../../kube/errors.ts";
import { withoutAmounts } from "../../kube/messages.ts";
import { isServed } from "../../kube/optional-resource.ts";
import type { HostIdentity } from "../../pods/delegate.ts";
import type { ActionContext } from "../../runtime/controller.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { referenceTo } from "../../runtime/kube-event.ts";
import type { WriteGuard } from "../../runtime/write-guard.ts";
import { findCopy, inMember } from "../copying/writer.ts";

export interface SourceWriterOptions {
  readonly host: ClusterClient;
  readonly identity: HostIdentity;
  readonly registry: Pick<Registry, "member">;
  readonly recorder: Pick<EventRecorder, "record">;
  readonly guard: WriteGuard<ObjectKey>;
}

/** `unchanged`: the host stored no change. `Conflict`, `NotFound`: the object has changed since, or is gone, which is an event. */
export type PatchOutcome = "done" | "unchanged" | "Conflict" | "NotFound";

export interface SourcePatchOptions extends WriteOptions {
  /** The caller deals with a lasting refusal. Default: the author is told of it. */
  readonly isQuiet?: boolean;
}

/** The question for a copy, to the write guard. */
const CONFIRMATION = "confirmation";

/** Writes on the host to objects that have copies in members, tells their authors, and asks members for the copies. */
export class SourceWriter<T extends KubeObject> {
  readonly #options: SourceWriterOptions;
  readonly #kind: CopiedKind<T>;

  constructor(kind: CopiedKind<T>, options: SourceWriterOptions) {
    this.#kind = kind;
    this.#options = options;
  }

  /** Asks members for copies before the source is let go, and reports whether none has one. Rejects with KubeError. */
  async confirmAbsence(
    source: Stored<T>,
    members: readonly string[],
    { key, signal }: Pick<ActionContext<ObjectKey>, "key" | "signal">,
  ): Promise<boolean> {
    for (const member of members) {
      const write = `${CONFIRMATION}/${member}`;
      try {
        const has = await this.hasCopy(source, member, signal);
        this.#options.guard.answered(key, write);
        if (has) return false;
      } catch (error) {
        if (isKubeError(error) && this.#options.guard.failed(key, write, error) !== "transient") {
          const message = `${member}: whether it still has a copy is not known, since its API server does not say: ${error.detail}`;
          this.tell(source, "DeletionNotConfirmed", message);
        }
        throw error;
      }
    }
    return true;
  }

  /** Asks the member itself: a create whose response was lost may have been done since. Rejects with KubeError. */
  async hasCopy(source: Stored<T>, name: string, signal: AbortSignal): Promise<boolean> {
    const { identity, registry } = this.#options;
    const { resource } = this.#kind;
    const object = toCopy(this.#kind, source, identity);
    const ref = refOf(source);
    const has = await inMember(registry, name, (member) =>
      findCopy({ member, resource, ref, object, hostId: identity.id, signal }).catch(async (error: unknown) => {
        // Without the definition there are no objects of it.
        const mayLackType = isKubeError(error, "NotFound") && resource.group.includes(".");
        if (mayLackType && !(await isServed(member.client, resource, signal))) return false;
        throw error;
      }),
    );
    // A member that was disconnected meanwhile said nothing.
    return has ?? true;
  }

  /** Rejects with KubeError. */
  async patch(
    source: Stored<T>,
    patch: Patch,
    { isQuiet = false, ...options }: SourcePatchOptions,
  ): Promise<PatchOutcome> {
    try {
      const answer = { metadataOnly: true, dropManagedFields: true };
      const { host } = this.#options;
      const { metadata } = await host.patch(this.#kind.resource, refOf(source), patch, { ...options, ...answer });
      return metadata.resourceVersion === source.metadata.resourceVersion ? "unchanged" : "done";
    } catch (error) {
      if (isKubeError(error, "Conflict")) return "Conflict";
      if (isKubeError(error, "NotFound")) return "NotFound";
      if (isLastingRefusal(error) && !isQuiet) {
        this.tell(source, "Refused", `this cluster refuses a change: ${error.detail}`);
      }
      throw error;
    }
  }

  tell(source: Stored<T>, reason: string, message: string, type: "Normal" | "Warning" = "Warning"): void {
    const dedupe = `${source.metadata.uid}/${withoutAmounts(message)}`;
    this.#options.recorder.record(referenceTo(this.#kind.resource, source), { reason, message, type, dedupe });
  }
}

export function isTaken(outcome: PatchOutcome): boolean {
  return outcome === "done" || outcome === "unchanged";
}

export function withFinalizer({ finalizers = [] }: ObjectMeta): string[] {
  return finalizers.includes(WHOLE_FINALIZER) ? finalizers : [...finalizers, WHOLE_FINALIZER];
}

export function withoutFinalizer({ finalizers = [] }: ObjectMeta): string[] {
  return finalizers.filter((finalizer) => finalizer !== WHOLE_FINALIZER);
}

function refOf({ metadata: { namespace = "", name } }: Stored<KubeObject>): {
  readonly namespace: string;
  readonly name: string;
} {
  return { namespace, name };
}
