import { type AnyObject, type DelegatedType, delegatedTypeSchema } from "../../api/delegated-type.ts";
import { DELEGATION_LABEL, GROUP, WHOLE_KEY } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { resourceOfType } from "../../api/resources.ts";
import { compileExpressions } from "../../copies/type-expressions.ts";
import type { Resource } from "../../kube/resources.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { objectText } from "../shared/output.ts";
import { admitObject } from "../simulation/admission.ts";
import { workloadKind } from "../simulation/workloads.ts";
import type { Answer } from "./dry-run.ts";
import type { PlannedNamespaces } from "./namespaces.ts";
import { emptyPlan, type WorkloadPlan } from "./outcome.ts";
import { modeOf } from "./review.ts";

/** An object of a manifest that asks to go to members whole, after admission. */
export interface ReviewedObject {
  /** The plan, without members. */
  readonly plan: WorkloadPlan;
  /** The object to place. Absent: it is refused, or stays on the host. */
  readonly toPlace?: { readonly object: Stored<AnyObject>; readonly type: DelegatedType };
  /** The check that was not made, with the reason. */
  readonly notChecked?: string;
}

/** The facts by which whole objects are reviewed. */
export interface ObjectReviewInput {
  readonly types: readonly DelegatedType[];
  /** Namespace of objects that name none. */
  readonly current: string;
  readonly namespaces: PlannedNamespaces;
  /** Asks the API server about an object by dry-run. */
  readonly ask: (resource: Resource<AnyObject>, object: AnyObject) => Promise<Answer<Stored<AnyObject>>>;
}

/** Reports whether the object asks to go to members whole, and has no pods of its own. */
export function isWholeObject(object: WrittenObject): boolean {
  const value = object.metadata.annotations?.[WHOLE_KEY];
  return value !== undefined && value !== "false" && workloadKind(object) === undefined && object.kind !== "Namespace";
}

/** Throws a `Failure` for a DelegatedType whose expressions do not compile. */
export function checkExpressions(object: WrittenObject): void {
  const { apiVersion, kind, metadata } = object;
  if (kind !== "DelegatedType" || !apiVersion.startsWith(`${GROUP}/`)) return;
  const read = delegatedTypeSchema.safeParse(object);
  // The API server says what else is wrong.
  const problems = read.success ? compileExpressions(read.data.spec).problems : [];
  if (problems.length === 0) return;
  throw new Failure("failure", {
    object: objectText(kind, { name: metadata.name ?? "" }),
    problem: problems.join("; "),
    remedy: "correct the expression",
  });
}

/** Reviews an object by Legation's webhook, and by the API server. */
export async function reviewObject(
  written: WrittenObject,
  { types, current, namespaces, ask }: ObjectReviewInput,
): Promise<ReviewedObject> {
  const { kind, metadata } = written;
  const type = typeOf(written, types);
  const namespace = type?.spec.scope === "Cluster" ? undefined : (metadata.namespace ?? current);
  const name = metadata.name ?? `${metadata.generateName ?? ""}*`;
  const plan = emptyPlan({ kind, namespace: namespace ?? "", name });
  const mode = namespace === undefined ? "annotated" : modeOf(namespace, namespaces);
  if (typeof mode !== "string") {
    const message = `namespace ${namespace} has no label ${DELEGATION_LABEL}: the object stays on the host`;
    return { plan: { ...plan, ...mode, ...(mode.outcome === "notDelegated" ? { message } : {}) } };
  }
  // Owners are of no account to members, and may not exist yet.
  const { namespace: _, ownerReferences: __, ...own } = metadata;
  const object = { ...written, metadata: { ...own, ...(namespace === undefined ? {} : { namespace }) } };
  const admitted = admitObject(object, types);
  if (admitted.denied !== undefined) return { plan: { ...plan, outcome: "refused", message: admitted.denied } };
  if (type === undefined) return { plan };
  const { labels = {}, annotations = {} } = admitted.object.metadata;
  const placed = { name, uid: "", resourceVersion: "", labels, annotations };
  const stored = { ...admitted.object, metadata: { ...placed, ...(namespace === undefined ? {} : { namespace }) } };
  const subject = objectText(kind, { namespace, name });
  if (namespace !== undefined && namespaces.changed.has(namespace)) {
    const notChecked = `policies and webhooks for ${subject}: the manifest creates or changes the namespace`;
    return { plan, toPlace: { object: stored, type }, notChecked };
  }
  const answer = await ask(resourceOfType(type), object);
  switch (answer.is) {
    case "refused":
      return { plan: { ...plan, outcome: "refused", message: answer.message } };
    case "admitted":
      return { plan, toPlace: { object: answer.object, type } };
    case "notChecked":
      return {
        plan,
        toPlace: { object: stored, type },
        notChecked: `policies and webhooks for ${subject}: ${answer.why}`,
      };
  }
}

function typeOf({ apiVersion, kind }: WrittenObject, types: readonly DelegatedType[]): DelegatedType | undefined {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return types.find(({ spec }) => (spec.group ?? "") === group && spec.kind === kind);
}
