import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { CopiedKind } from "../../copies/kind.ts";
import type { PatchOutcome, SourcePatchOptions } from "../copying/source-writer.ts";

/** The writes of one kind of objects. */
export interface WholeWrites<T extends KubeObject, Assignment, Shown> {
  readonly kind: CopiedKind<T>;
  /** The status in messages, e.g. `the status`. */
  readonly statusName: string;
  /** Returns the annotations that record the members, and what the author is told of them. */
  recordOf(assignment: Assignment): {
    readonly annotations: Readonly<Record<string, string>>;
    readonly message: string;
  };
  /** Returns what is shown as the write guard knows it. */
  contentOf(shown: Shown): string;
  /** Writes what is shown of the copies. Rejects with KubeError. */
  writeStatus(object: Stored<T>, shown: Shown, patch: StatusPatch): Promise<PatchOutcome>;
  /** Returns the part of the metadata that goes with the finalizer. Default: none. */
  marksOnRelease?(keepsLabel: boolean): object;
}

/** Sends a patch of the object. The author is not told of a refusal. */
export type StatusPatch = (
  body: readonly object[],
  options: Pick<SourcePatchOptions, "subresource">,
) => Promise<PatchOutcome>;
