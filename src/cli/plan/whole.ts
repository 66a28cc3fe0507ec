import { asksWhole } from "../../../webhook/whole.ts";
import { type AnyObject, type DelegatedType, delegatedTypeSchema } from "../../api/delegated-type.ts";
import { GROUP } from "../../api/keys.ts";
import type { Job, Stored } from "../../api/kubernetes.ts";
import { resourceOfType } from "../../api/resources.ts";
import { compileExpressions } from "../../copies/type-expressions.ts";
import type { Resource } from "../../kube/resources.ts";
import { admitObject, groupOf, typeAmong } from "../../simulation/admission.ts";
import { JOBS } from "../../whole/jobs/type.ts";
import type { WholeType } from "../../whole/type.ts";
import { wholeTypeOf } from "../../whole/types.ts";
import { withoutShape } from "../shared/delegated-types.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { objectText } from "../shared/output.ts";
import { podsOf, WORKLOAD_RESOURCES, wholeJobOf, workloadKind } from "../simulation/workloads.ts";
import type { PlanInput, Reviewed } from "./input.ts";
import type { WrittenWorkload } from "./manifest.ts";
import { modeOf } from "./namespaces.ts";
import { emptyPlan, type WorkloadPlan } from "./outcome.ts";

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
export async function reviewObject(written: WrittenObject, input: PlanInput): Promise<Reviewed> {
  const { types, current, namespaces } = input;
  const { kind } = written;
  const ofKind = { group: groupOf(written), kind };
  const type = wholeTypeOf(ofKind)?.type ?? typeAmong(types, ofKind);
  const resource = type && ("place" in type ? withoutShape(type.resource) : resourceOfType(type));
  const { namespace: named = current, name, generateName } = written.metadata;
  const namespace = resource?.namespaced === false ? "" : named;
  const plan = emptyPlan({ kind, namespace, name: name ?? `${generateName}*` });
  const mode = namespace === "" ? "annotated" : modeOf(namespace, namespaces, "the object stays on the host");
  if (typeof mode !== "string") return { plan: { ...plan, ...mode } };
  const object = sent(written, namespace);
  const admitted = admitObject(object, types);
  if (admitted.denied !== undefined) return { plan: { ...plan, outcome: "refused", message: admitted.denied } };
  if (type === undefined || resource === undefined) return { plan };
  const { labels = {}, annotations = {} } = admitted.object.metadata;
  const at = namespace === "" ? {} : { namespace };
  const metadata = { name: plan.name, uid: "", resourceVersion: "", labels, annotations, ...at };
  const asked = { plan, object, resource };
  return askAbout(asked, input, (answer) => placeBy(type, answer ?? { ...admitted.object, metadata }));
}

/** Reviews a Job that runs whole, or a run of a CronJob that makes such Jobs. One that is there keeps the members that it has. */
export async function reviewJob(
  whole: Stored<Job>,
  workload: WrittenWorkload,
  plan: WorkloadPlan,
  input: PlanInput,
): Promise<Reviewed> {
  const { kind, namespace, object } = workload;
  const stored = input.found.existing.get(workload)?.stored;
  if (stored === undefined) {
    const notes = kind === "CronJob" ? ["for one run of it"] : [];
    const asked = {
      plan: { ...plan, notes },
      object: sent(object, namespace),
      resource: withoutShape(WORKLOAD_RESOURCES[kind]),
    };
    return askAbout(asked, input, (answer) => placeBy(JOBS, wholeJobOf({ ...object, ...answer }, workload) ?? whole));
  }
  const there = wholeJobOf(stored, workload);
  if (there === undefined) {
    const message = "it is there already, and does not run whole; delete it, and create it anew";
    return { plan: { ...plan, outcome: "refused", message } };
  }
  const members = JOBS.membersOf(there);
  const where = members.length === 0 ? "in no member yet" : `in ${members.join(", ")}`;
  const notes = [`is there already (${where}): what runs a Job, and where, never changes`];
  const isWaiting = members.length === 0 && podsOf(stored, "Job").replicas > 0;
  return { plan: { ...plan, notes }, place: isWaiting ? placeBy(JOBS, there) : undefined };
}

/** Returns the object as it is sent. Owners are of no account to members, and may not exist yet. */
function sent(written: WrittenObject, namespace: string) {
  const { ownerReferences: _, namespace: __, ...metadata } = written.metadata;
  return { ...written, metadata: { ...metadata, ...(namespace === "" ? {} : { namespace }) } };
}

interface Asked {
  readonly plan: WorkloadPlan;
  readonly object: AnyObject;
  readonly resource: Resource<AnyObject>;
}

/** Asks the API server about an object. `placeOf` is given the object as admission leaves it, if it was asked. */
async function askAbout(
  { plan, object, resource }: Asked,
  { namespaces, askObject }: Pick<PlanInput, "namespaces" | "askObject">,
  placeOf: (answer: Stored<AnyObject> | undefined) => Reviewed["place"],
): Promise<Reviewed> {
  const { kind, namespace, name } = plan;
  const isChanged = namespace !== undefined && namespaces.changed.has(namespace);
  const why = "the manifest creates or changes the namespace";
  const answer = isChanged ? { is: "notChecked" as const, why } : await askObject(resource, object);
  if (answer.is === "refused") return { plan: { ...plan, outcome: "refused", message: answer.message } };
  if (answer.is === "admitted") return { plan, place: placeOf(answer.object) };
  const notChecked = `policies and webhooks for ${objectText(kind, { namespace, name })}: ${answer.why}`;
  return { plan, place: placeOf(undefined), notChecked };
}

function placeBy(type: DelegatedType | WholeType, object: Stored<AnyObject>): NonNullable<Reviewed["place"]> {
  return (simulation) => {
    const place = simulation.placeObject(object, type);
    const isWaiting = place.clusters.length === 0 || place.misfits.length > 0;
    return { outcome: isWaiting ? "waits" : "fits", object: place };
  };
}
