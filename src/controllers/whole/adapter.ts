import type { KubeObject, ObjectKey, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { CopiedKind } from "../../copies/kind.ts";
import type { Source } from "../../copies/source.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Copier, CopyStanding } from "../copying/copier.ts";
import type { Copies } from "../copying/copies.ts";
import type { Demand, ObjectName } from "../copying/model.ts";
import type { Observed, WholeDecision } from "./model.ts";
import type { PatchOutcome, SourcePatchOptions } from "./source-writer.ts";

/** A kind of whole objects. The engine watches, records and releases; the adapter says who gets what of an object, and what copies mean for it. */
export interface WholeAdapter<T extends KubeObject, Assignment, Shown, O extends Observed<T, Shown>> {
  /** The controller of the objects and that of their copies, in logs and metrics. */
  readonly names: { readonly objects: string; readonly copies: string };
  readonly writes: WholeWrites<T, Assignment, Shown>;
  /** Has a copy of this very object made again if a fixed field differs. Copies of an earlier object of the name are replaced in any case. */
  readonly replacesCopies: boolean;
  /** Returns further fields of log lines. */
  identify?(): Readonly<Record<string, string>>;
  /** Returns the members on record: changes of others do not concern the object. Absent: each member concerns each object. */
  membersOnRecord?(object: T): readonly string[];
  /** Never returns `needed` before the finalizer holds the object: its release asks members for copies. */
  demandFor(object: Stored<T>, member: string): Demand;
  /** Returns the object for the member, the same one while nothing changes. `missing`: a copy goes. `unknown`: a copy stays. */
  sourceFor(object: Stored<T>, member: Member, copier: KnownCopies<T>): Source<T>;
  observe(known: Observed<T, Shown>, copier: Copier<T>): O;
  decide(observed: O, now: number, wall: number): WholeDecision<T, Assignment, Shown>;
  forget?(key: ObjectKey): void;
  /** Has all computed anew: a namespace, or the defaults of all, have changed. */
  reset(): void;
  /** Called when counts and failures may have changed. */
  onChange?(): void;
  /** Reports whether the member is to have an object that was read just now: where `sourceFor` is not `missing`. */
  isWantedIn(object: Stored<T>, member: Member): boolean;
  /** Reports whether an unwanted copy is the author's doing: else a restored host may not know it yet. `isOfCopy`: the copy was made of `found`. */
  isTakenBack(found: Stored<T> | undefined, isOfCopy: boolean): boolean;
  /** Leaves an unwanted copy in its member, and reports whether it did. Rejects with KubeError. Default: it is deleted. */
  leave?(copy: UnwantedCopy<T>): Promise<boolean>;
}

export interface KnownCopies<T extends KubeObject> {
  readonly copies: Pick<Copies<T>, "of">;
}

export interface WholeWrites<T extends KubeObject, Assignment, Shown> {
  readonly kind: CopiedKind<T>;
  /** The status in messages, e.g. `the status`. */
  readonly statusName: string;
  /** Returns the annotations that record the members, null for one that goes, and what the author is told of them. */
  recordOf(assignment: Assignment): {
    readonly annotations: Readonly<Record<string, string | null>>;
    readonly message: string;
  };
  /** Writes what is shown of the copies. Rejects with KubeError. */
  writeStatus(object: Stored<T>, shown: Shown, patch: SendPatch): Promise<PatchOutcome>;
  /** Returns the part of the metadata that goes with the finalizer. Default: none. */
  marksOnRelease?(keepsLabel: boolean): object;
}

/** Sends a patch of the object. The author is not told of a refusal. */
export type SendPatch = (
  body: readonly object[],
  options: Pick<SourcePatchOptions, "subresource">,
) => Promise<PatchOutcome>;

/** A copy whose object is gone, or not for the member any more, as the host said just now. */
export interface UnwantedCopy<T extends KubeObject> {
  readonly host: ClusterClient;
  readonly member: Member;
  readonly copy: Stored<T>;
  /** Absent: it is gone. */
  readonly object?: Stored<T>;
  readonly signal: AbortSignal;
}

/** Returns a copy as the copier and the member's watch know it. `found` may be of an earlier object of the same name. */
export function copyIn<T extends KubeObject>(
  copier: Copier<T>,
  member: Member,
  { kind, namespace, name }: ObjectName,
): CopyStanding & { readonly found: Stored<T> | undefined; readonly isUsable: boolean } {
  const found = copier.copies.of(member, kind, namespace, name);
  const isUsable = member.reachable && copier.copies.isCurrent(member);
  return { ...copier.standing(member, { kind, namespace, name }), found, isUsable };
}
