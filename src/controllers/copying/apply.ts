import type { KubeObject } from "../../api/kubernetes.ts";
import type { LeftFields } from "../../copies/kind.ts";
import { isKubeError, isLastingRefusal, type KubeError } from "../../kube/errors.ts";
import { fieldManagerIn } from "../../kube/messages.ts";
import { type OwnedCopy, ownAsApplied } from "./field-owners.ts";
import { ANSWER, type Changed, type CopyTarget, type FieldOfOther, type Judgement } from "./requests.ts";

export interface CopyApply<T extends KubeObject> extends CopyTarget<T>, Pick<OwnedCopy<T>, "newlyRetained"> {
  readonly fieldManager: string;
  /** The copy was created and never applied. */
  readonly isNew: boolean;
  /** Called once for each field that another manager owns. */
  readonly judge: (field: FieldOfOther) => Judgement;
  /** Returns the object to apply, without fields that are left to other managers. Its resourceVersion is the copy's. */
  readonly object: (left: LeftFields) => T;
}

const UNKNOWN = "another manager";
// An attempt settles all fields that the API server named.
const MOST_CONFLICTS = 5;

/** Forces only fields that `judge` wants restored, and no version of the copy but the one that named them. */
export async function applyCopy<T extends KubeObject>(change: CopyApply<T>): Promise<Changed> {
  const { member, resource, ref, fieldManager, judge, object, signal } = change;
  const options = { ...ANSWER, signal, fieldManager };
  const judged: Record<Judgement, FieldOfOther[]> = { restored: [], givenUp: [], lost: [] };
  let resourceVersion: string | undefined;
  for (let attempt = 0; ; attempt += 1) {
    try {
      const isToOwn = change.isNew || change.newlyRetained.length > 0;
      if (attempt === 0 && isToOwn) resourceVersion = await ownAsApplied(change);
      const wanted = object({ givenUp: namesOf(judged.givenUp), lost: namesOf(judged.lost) });
      const body =
        resourceVersion === undefined ? wanted : { ...wanted, metadata: { ...wanted.metadata, resourceVersion } };
      const force = judged.restored.length > 0;
      const { metadata } = await member.client.patch(resource, ref, { type: "apply", body, force }, options);
      return { type: "changed", resourceVersion: metadata.resourceVersion, judged };
    } catch (error) {
      if (isLastingRefusal(error)) return { type: "refused", error };
      if (!isKubeError(error, "Conflict", "NotFound")) throw error;
      const known = namesOf(Object.values(judged).flat());
      const fields = fieldsOfOthers(error);
      const news = fields.filter(({ field }) => !known.includes(field));
      if (fields.length === 0) return { type: "moved" };
      // Force takes fields that the answer did not name, too.
      const isKnownWhole = error.details?.isCut !== true;
      if (attempt === MOST_CONFLICTS || news.length === 0 || !isKnownWhole) return { type: "refused", error };
      for (const one of news) judged[judge(one)].push(one);
    }
  }
}

/** Names each field once, though several managers may own it. */
function fieldsOfOthers({ details }: KubeError): FieldOfOther[] {
  const managers = new Map<string, string>();
  for (const { type, field, message = "" } of details?.causes ?? []) {
    if (type === "FieldManagerConflict" && field !== undefined) managers.set(field, fieldManagerIn(message) ?? UNKNOWN);
  }
  return [...managers].map(([field, manager]) => ({ field, manager }));
}

function namesOf(fields: readonly FieldOfOther[]): string[] {
  return fields.map(({ field }) => field);
}
