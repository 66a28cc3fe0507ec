import type { Pod, ResourceQuota, Stored } from "../../api/kubernetes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isBound } from "../../pods/phase.ts";
import { memberOf } from "../../pods/proxy.ts";
import { type Admitted, admitPod, isDelegated } from "./admission.ts";
import { writtenClaim } from "./claims.ts";
import { podOf } from "./controller-pods.ts";
import type { WrittenObject } from "./documents.ts";
import type { Answer } from "./dry-run.ts";
import { isHostsOwn } from "./existing.ts";
import { isWaiting, NOTHING, type Plan, type PlannedPod, plannedMembers, type WorkloadPlan } from "./outcome.ts";
import type { PlanInput, Prepared, PreparedWorkload } from "./prepare.ts";
import { hasScopes, Quotas } from "./quotas.ts";
import { type Place, Simulation } from "./simulation.ts";

/** Answers of the API server by the workload whose pod it was asked about. */
export type Answers = ReadonlyMap<Prepared, Answer<Stored<Pod>>>;

/** Asks the API server about one pod of each workload. */
export async function answersTo(
  prepared: readonly Prepared[],
  ask: (pod: Pod) => Promise<Answer<Stored<Pod>>>,
): Promise<Answers> {
  const asked = prepared.map(async (one) => {
    if (one.decided !== undefined || one.question === undefined || one.question.notAsked !== undefined) return [];
    return [[one, await ask(one.question.pod)] as const];
  });
  return new Map((await Promise.all(asked)).flat());
}

/**
 * Places all pods of a manifest, one after another in its order, in the host's state: as the API server has admitted them, or as
 * Legation's webhook alone would where it was not asked.
 */
export function planOf(input: PlanInput, prepared: readonly Prepared[], answers: Answers): Plan {
  const { objects, host, namespaces: planned, found, current, now } = input;
  const { namespaces } = planned;
  const { claims, missing, quotas } = found;
  const simulation = new Simulation({ ...host, namespaces, claims, missing }, now);
  for (const object of objects) {
    const { name, namespace = current } = object.metadata;
    if (object.apiVersion === "v1" && object.kind === "PersistentVolumeClaim" && name !== undefined) {
      simulation.addClaim(namespace, name, writtenClaim(object));
    }
  }
  const notChecked = new Set([...planned.notChecked, ...found.notChecked, ...limitNotes(objects, quotas, current)]);
  const at = { simulation, quotas: new Quotas(quotas), notChecked };
  const workloads = prepared.map((one) => one.decided ?? placeWorkload(one, answers.get(one), at));
  return {
    fits: workloads.every(({ outcome }) => outcome === "fits" || outcome === "notDelegated"),
    workloads,
    guesses: simulation.members.flatMap(({ name: cluster, guesses }) =>
      guesses.map((message) => ({ cluster, message })),
    ),
    notChecked: [...notChecked],
  };
}

/** Names the limits that dry-runs do not apply. */
function limitNotes(
  objects: readonly WrittenObject[],
  quotas: readonly Stored<ResourceQuota>[],
  current: string,
): string[] {
  const written = objects.filter(
    ({ apiVersion, kind }) => apiVersion === "v1" && /^(ResourceQuota|LimitRange)$/.test(kind),
  );
  return [
    ...written.map(
      ({ kind, metadata: { name, namespace = current } }) =>
        `${kind} ${namespace}/${name} of the manifest: pods are checked by those that the host has now`,
    ),
    ...quotas
      .filter(hasScopes)
      .map(
        ({ metadata: { namespace, name } }) =>
          `ResourceQuota ${namespace}/${name} for more than one pod: it has scopes`,
      ),
  ];
}

/** The state that the pods of a manifest change one after another. */
interface Course {
  readonly simulation: Simulation;
  readonly quotas: Quotas;
  readonly notChecked: Set<string>;
}

function placeWorkload(
  prepared: PreparedWorkload,
  answer: Answer<Stored<Pod>> | undefined,
  course: Course,
): WorkloadPlan {
  const { workload, pods, standing } = prepared;
  const { simulation, quotas } = course;
  for (const pod of standing.leaving) {
    quotas.release(pod);
    simulation.remove(pod);
  }
  const { podAt, refused } = comingPods(prepared, answer, course.notChecked);
  const plan = { ...workload, ...NOTHING };
  const warnings = new Set(prepared.warnings);
  if (!asksForDelegation(prepared, podAt)) {
    // Pods that stay on the host count in quotas, too.
    for (const index of standing.coming) {
      const own = podAt(index);
      if (own.denied !== undefined) continue;
      for (const warning of own.warnings) warnings.add(warning);
      quotas.admit(own.object);
    }
    const message = "its pods do not ask for delegation: they run on the host";
    return { ...plan, outcome: "notDelegated", message, warnings: [...warnings] };
  }
  const notes = new Set([...pods.notes, ...standing.notes]);
  const placed: PlannedPod[] = [];
  const whyNot: Place["others"][number][] = [];
  const add = (pod: Pick<PlannedPod, "name" | "kept">, { others, ...place }: Place): void => {
    placed.push({ ...pod, ...place });
    whyNot.push(...others);
  };
  for (const pod of standing.kept) {
    const kept = { name: pod.metadata.name, kept: true } as const;
    if (isHostsOwn(pod)) placed.push({ ...kept, onHost: true });
    else add(kept, placeOfKept(pod, simulation));
  }
  for (const index of standing.coming) {
    // The StatefulSet controller creates claims before the pod.
    for (const claim of pods.claims ?? []) {
      simulation.addClaim(workload.namespace, `${claim.name}-${workload.name}-${index}`, claim.spec);
    }
    const pod = podAt(index);
    if (pod.denied !== undefined) return { ...plan, outcome: "refused", message: pod.denied, warnings: [...warnings] };
    for (const warning of pod.warnings) warnings.add(warning);
    const message = refused ?? quotas.admit(pod.object);
    if (message !== undefined) {
      if (workload.kind === "Pod") return { ...plan, outcome: "refused", message, warnings: [...warnings] };
      // The reason is that of a controller's event for a pod that it could not create.
      add({ name: pod.object.metadata.name }, { reason: "FailedCreate", message, others: [] });
      continue;
    }
    if (isOverflow(pod.object)) {
      notes.add("the host's own scheduler is asked first: this is for pods that it has no room for");
    }
    add({ name: pod.object.metadata.name }, simulation.place(pod.object));
  }
  return {
    ...plan,
    outcome: placed.some(isWaiting) ? "waits" : "fits",
    warnings: [...warnings],
    notes: [...notes],
    pods: placed,
    clusters: plannedMembers(
      simulation.members.map(({ name }) => name),
      placed,
      whyNot,
    ),
  };
}

/** The pods that come, by index or ordinal, after admission. */
interface ComingPods {
  readonly podAt: (index: number) => Admitted<Stored<Pod>>;
  /** Why the API server refuses each of them. */
  readonly refused?: string;
}

function comingPods(
  { workload, mode, pods, maker, standing, question }: PreparedWorkload,
  answer: Answer<Stored<Pod>> | undefined,
  notChecked: Set<string>,
): ComingPods {
  const { kind, namespace, name } = workload;
  const byWebhook = (index: number): Admitted<Stored<Pod>> => admitPod(podOf(workload, pods, index, maker), mode);
  const note = (why: string): void => {
    notChecked.add(`${NOT_RUN} for ${kind} ${namespace}/${name}: ${why}`);
  };
  if (question?.notAsked !== undefined) {
    notChecked.add(`${NOT_RUN} in namespace ${namespace}: ${question.notAsked}`);
    return { podAt: byWebhook };
  }
  if (question === undefined || answer === undefined) return { podAt: byWebhook };
  if (answer.is === "notChecked") {
    note(answer.why);
    return { podAt: byWebhook };
  }
  if (answer.is === "refused") {
    if (!answer.ofQuota || standing.leaving.length === 0) return { podAt: byWebhook, refused: answer.message };
    note(`${answer.message}, until the pods that go have gone`);
    return { podAt: byWebhook };
  }
  const withheld = Object.values(question.withheld);
  if (withheld.length > 0) {
    const names = withheld.join(" and ");
    notChecked.add(
      `pods of ${kind} ${namespace}/${name} with ${names}: created by the manifest, so left out of the dry-run`,
    );
  }
  const { metadata, spec = { containers: [] } } = answer.object;
  const admitted = { ...pods, metadata, spec: { ...spec, ...question.withheld } };
  return {
    podAt: (index) => {
      const own = byWebhook(index);
      const warnings = own.denied === undefined ? own.warnings : [];
      return { object: podOf(workload, admitted, index, maker), warnings };
    },
  };
}

const NOT_RUN = "defaults, LimitRanges, quotas, Pod Security, policies and webhooks";

/** Reports whether the pods that come ask for delegation; where none comes, whether those that stay did. */
function asksForDelegation({ standing: { kept, coming } }: PreparedWorkload, podAt: ComingPods["podAt"]): boolean {
  if (coming.length === 0 && kept.some((pod) => !isHostsOwn(pod))) return true;
  const next = podAt(coming[0] ?? kept.length);
  return next.denied !== undefined || isDelegated(next.object);
}

/** Returns the place of a pod that exists: its member, or the one that it goes to. */
function placeOfKept(pod: Stored<Pod>, simulation: Simulation): Place {
  const cluster = memberOf(pod);
  if (cluster !== undefined) return { cluster, others: [] };
  if (isOverflow(pod) && !isBound(pod)) return simulation.place(pod);
  return simulation.placeOfWaiting(pod.metadata.uid) ?? { others: [] };
}
