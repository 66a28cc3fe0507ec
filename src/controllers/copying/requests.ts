import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import type { LeftFields } from "../../copies/kind.ts";
import type { KubeError } from "../../kube/errors.ts";
import type { Resource } from "../../kube/resources.ts";

/** The writes of a copy but its deletion, to the write guard. */
export const COPY = "copy";
/** The deletion of a copy, which is held apart from other writes. */
export const DELETION = "deletion";

/** How long a write is held that another manager undoes again and again; ms. */
export const CONTESTED_FOR_MS: number = 10 * 60_000;

/** The answer to a write carries no content, of a Secret least of all. */
export const ANSWER = { metadataOnly: true, dropManagedFields: true } as const;

export interface CopyTarget<T extends KubeObject> {
  readonly member: Member;
  readonly resource: Resource<T>;
  readonly ref: { readonly namespace: string; readonly name: string };
  readonly signal: AbortSignal;
}

/** A field of a copy that another manager of the member owns. */
export interface FieldOfOther {
  /** As server-side apply names it. */
  readonly field: string;
  readonly manager: string;
}

/** `restored`: taken back by force. The others are left to their managers. */
export type Judgement = "restored" | keyof LeftFields;

/** Fields of others that an apply has met, by what became of them. */
export type Judged = Readonly<Record<Judgement, readonly FieldOfOther[]>>;

/** `moved`: another manager changed or deleted the copy. */
export type Changed =
  | {
      readonly type: "changed";
      readonly resourceVersion: string;
      /** The fields of others that an apply has met. */
      readonly judged?: Judged;
    }
  | { readonly type: "moved" }
  | RefusedRequest;

export interface RefusedRequest {
  readonly type: "refused";
  readonly error: KubeError;
}

/** Names the version of an object for which writes are held and counted. */
export function versionOf({ metadata: { uid, resourceVersion } }: Stored<KubeObject>): string {
  return `${uid}/${resourceVersion}`;
}
