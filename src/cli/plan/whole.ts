import { asksWhole } from "../../../webhook/whole.ts";
import { type AnyObject, type DelegatedType, delegatedTypeSchema } from "../../api/delegated-type.ts";
import { GROUP } from "../../api/keys.ts";
import type { Job, KubeObject, Stored } from "../../api/kubernetes.ts";
import { resourceOfType } from "../../api/resources.ts";
import { compileExpressions } from "../../copies/type-expressions.ts";
import { admitObject, groupOf, typeAmong } from "../../simulation/admission.ts";
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
import type { PlanInput, Reviewed } from "./input.ts";
import { modeOf } from "./namespaces.ts";
import { emptyPlan, hasNoPlace, type WorkloadPlan } from "./outcome.ts";

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
  { types, current, namespaces, askObject }: Pick<PlanInput, "types" | "current" | "namespaces" | "askObject">,
): Promise<Reviewed> {
  const { kind } = written;
  const ofKind = { group: groupOf(written), kind };
  const builtIn = wholeTypeOf(ofKind)?.type;
  const type = typeAmong(types, ofKind);
  const resource = builtIn === undefined ? type && resourceOfType(type) : withoutShape(builtIn.resource);
  // Owners are of no account to members, and may not exist yet.
  const { namespace: named = current, ownerReferences: _, ...own } = written.metadata;
  const namespace = resource?.namespaced === false ? undefined : named;
  const name = own.name ?? `${own.generateName}*`;
  const plan = emptyPlan({ kind, namespace, name });
  const mode = namespace === undefined ? "annotated" : modeOf(namespace, namespaces, "the object stays on the host");
  if (typeof mode !== "string") return { plan: { ...plan, ...mode } };
  const at = namespace === undefined ? {} : { namespace };
  const object = { ...written, metadata: { ...own, ...at } };
  const admitted = admitObject(object, types);
  if (admitted.denied !== undefined) return { plan: { ...plan, outcome: "refused", message: admitted.denied } };
  if (resource === undefined) return { plan };
  const isChanged = namespace !== undefined && namespaces.changed.has(namespace);
  const why = "the manifest creates or changes the namespace";
  const answer = isChanged ? { is: "notChecked" as const, why } : await askObject(resource, object);
  if (answer.is === "refused") return { plan: { ...plan, outcome: "refused", message: answer.message } };
  const { labels = {}, annotations = {} } = admitted.object.metadata;
  const metadata = { name, uid: "", resourceVersion: "", labels, annotations, ...at };
  const stored = answer.is === "admitted" ? answer.object : { ...admitted.object, metadata };
  const notChecked =
    answer.is === "admitted"
      ? undefined
      : `policies and webhooks for ${objectText(kind, { namespace, name })}: ${answer.why}`;
  if (builtIn !== undefined)
    return { plan, place: (simulation) => placeBuiltIn(stored, builtIn, simulation), notChecked };
  return { plan, place: type && ((simulation) => placeObject(stored, type, simulation)), notChecked };
}

/** Reviews a Job that runs whole: it keeps the members that it has. */
export function reviewJob(job: Stored<Job>, plan: WorkloadPlan, stored: WrittenObject | undefined): Reviewed {
  const { kind, namespace = "", name } = plan;
  const place =
    (one: Stored<Job>): Reviewed["place"] =>
    (simulation) =>
      placeBuiltIn(one, JOBS, simulation);
  if (stored === undefined || kind === "CronJob") {
    const notes = kind === "CronJob" ? ["for one run of it"] : [];
    const notChecked = `quotas and policies of this cluster for ${kind} ${namespace}/${name}: a whole Job is not sent by dry-run`;
    return { plan: { ...plan, notes }, place: place(job), notChecked };
  }
  const there = wholeJobOf(stored, { kind: "Job", namespace, name });
  if (there === undefined) {
    const message = "it is there already, and does not run whole; delete it, and create it anew";
    return { plan: { ...plan, outcome: "refused", message } };
  }
  const members = membersOfJob(there);
  const where = members.length === 0 ? "in no member yet" : `in ${members.join(", ")}`;
  const notes = [`is there already (${where}): what runs a Job, and where, never changes`];
  const isWaiting = members.length === 0 && podsOf(stored, "Job").replicas > 0;
  return { plan: { ...plan, notes }, place: isWaiting ? place(there) : undefined };
}

function placeBuiltIn(object: Stored<KubeObject>, type: WholeType, simulation: Simulation): Partial<WorkloadPlan> {
  const whole = simulation.placeWhole(type, object);
  return { outcome: hasNoPlace(whole) ? "waits" : "fits", whole };
}

function placeObject(object: Stored<AnyObject>, type: DelegatedType, simulation: Simulation): Partial<WorkloadPlan> {
  const place = simulation.placeObject(object, type);
  const isWaiting = place.clusters.length === 0 || place.misfits.length > 0;
  return { outcome: isWaiting ? "waits" : "fits", object: place };
}
