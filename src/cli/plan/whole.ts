import { asksWhole } from "../../../webhook/whole.ts";
import { type AnyObject, type DelegatedType, delegatedTypeSchema } from "../../api/delegated-type.ts";
import { DELEGATION_LABEL, GROUP } from "../../api/keys.ts";
import type { Job, KubeObject, Stored } from "../../api/kubernetes.ts";
import { resourceOfType } from "../../api/resources.ts";
import { compileExpressions } from "../../copies/type-expressions.ts";
import type { Resource } from "../../kube/resources.ts";
import { admitObject } from "../../simulation/admission.ts";
import type { Simulation } from "../../simulation/simulation.ts";
import { membersOfJob } from "../../whole/jobs/shares.ts";
import { JOBS } from "../../whole/jobs/type.ts";
import type { WholeType } from "../../whole/type.ts";
import { wholeTypeOf } from "../../whole/types.ts";
import { withoutShape } from "../shared/delegated-types.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { objectText } from "../shared/output.ts";
import { podsOf, wholeJobOf, workloadKind } from "../simulation/workloads.ts";
import type { DryRunAnswer } from "./dry-run.ts";
import { modeOf, type PlannedNamespaces } from "./namespaces.ts";
import { emptyPlan, hasNoPlace, type WorkloadPlan } from "./outcome.ts";

/** An object that asks to go to members whole, or a workload, after admission. */
export interface ReviewedWhole {
  readonly plan: WorkloadPlan;
  /** The object to place as a whole. Absent: it is refused, stays on the host, or has pods to place. */
  readonly toPlace?:
    | { readonly object: Stored<KubeObject>; readonly builtIn: WholeType }
    | { readonly object: Stored<AnyObject>; readonly type: DelegatedType };
  readonly notChecked?: string | undefined;
}

export interface ObjectReviewInput {
  readonly types: readonly DelegatedType[];
  /** Namespace of objects that name none. */
  readonly current: string;
  readonly namespaces: PlannedNamespaces;
  readonly ask: (resource: Resource<AnyObject>, object: AnyObject) => Promise<DryRunAnswer<Stored<AnyObject>>>;
}

/** Reports whether the object asks to go to members whole, and has no pods of its own. */
export function isWholeObject(object: WrittenObject): boolean {
  return asksWhole({ metadata: object.metadata }) && workloadKind(object) === undefined && object.kind !== "Namespace";
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
): Promise<ReviewedWhole> {
  const { kind, metadata } = written;
  const found = typeOf(written, types);
  const namespace = found?.resource.namespaced === false ? undefined : (metadata.namespace ?? current);
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
  if (found === undefined) return { plan };
  const { resource, ...of } = found;
  const { labels = {}, annotations = {} } = admitted.object.metadata;
  const placed = { name, uid: "", resourceVersion: "", labels, annotations };
  const stored = { ...admitted.object, metadata: { ...placed, ...(namespace === undefined ? {} : { namespace }) } };
  const isChanged = namespace !== undefined && namespaces.changed.has(namespace);
  const why = "the manifest creates or changes the namespace";
  const answer = isChanged ? { is: "notChecked" as const, why } : await ask(resource, object);
  if (answer.is === "refused") return { plan: { ...plan, outcome: "refused", message: answer.message } };
  if (answer.is === "admitted") return { plan, toPlace: { object: answer.object, ...of } };
  const notChecked = `policies and webhooks for ${objectText(kind, { namespace, name })}: ${answer.why}`;
  return { plan, toPlace: { object: stored, ...of }, notChecked };
}

/** Reviews a Job that runs whole: it keeps the members that it has. */
export function reviewJob(job: Stored<Job>, plan: WorkloadPlan, stored: WrittenObject | undefined): ReviewedWhole {
  const { kind, namespace, name } = plan;
  if (stored !== undefined && kind === "Job") {
    const there = wholeJobOf(stored, { kind, namespace, name });
    if (there === undefined) {
      const message = "it is there already, and does not run whole; delete it, and create it anew";
      return { plan: { ...plan, outcome: "refused", message } };
    }
    const members = membersOfJob(there);
    const place = members.length === 0 ? "in no member yet" : `in ${members.join(", ")}`;
    const reviewed = {
      plan: { ...plan, notes: [`is there already (${place}): what runs a Job, and where, never changes`] },
    };
    const isWaiting = members.length === 0 && podsOf(stored, kind).replicas > 0;
    return isWaiting ? { ...reviewed, toPlace: { object: there, builtIn: JOBS } } : reviewed;
  }
  const notChecked = `quotas and policies of this cluster for ${kind} ${namespace}/${name}: a whole Job is not sent by dry-run`;
  const notes = kind === "CronJob" ? ["for one run of it"] : [];
  return { plan: { ...plan, notes }, toPlace: { object: job, builtIn: JOBS }, notChecked };
}

/** Gives a whole Job or object its members, if there is one to place. */
export function placeWhole({ plan, toPlace }: ReviewedWhole, simulation: Simulation): WorkloadPlan {
  if (toPlace === undefined) return plan;
  if ("builtIn" in toPlace) {
    const whole = simulation.placeWhole(toPlace.builtIn, toPlace.object);
    return { ...plan, outcome: hasNoPlace(whole) ? "waits" : "fits", whole };
  }
  const object = simulation.placeObject(toPlace.object, toPlace.type);
  const isWaiting = object.clusters.length === 0 || object.misfits.length > 0;
  return { ...plan, outcome: isWaiting ? "waits" : "fits", object };
}

function typeOf(
  { apiVersion, kind }: WrittenObject,
  types: readonly DelegatedType[],
): ({ readonly resource: Resource<AnyObject> } & ({ builtIn: WholeType } | { type: DelegatedType })) | undefined {
  const [group = ""] = apiVersion.includes("/") ? apiVersion.split("/") : [];
  const builtIn = wholeTypeOf({ group, kind })?.type;
  if (builtIn !== undefined) return { resource: withoutShape(builtIn.resource), builtIn };
  const type = types.find(({ spec }) => (spec.group ?? "") === group && spec.kind === kind);
  return type && { resource: resourceOfType(type), type };
}
