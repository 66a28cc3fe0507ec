import { delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import type { Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isBound } from "../../pods/phase.ts";
import { admitPod, admitWorkload } from "./admission.ts";
import { asApplied, withStandingAnnotations } from "./applied.ts";
import type { WrittenObject } from "./documents.ts";
import { isHostsOwn, makerOf, type Standing, standingOf } from "./existing.ts";
import type { NamedWorkload } from "./owned-pods.ts";
import { type HostState, type Place, Simulation } from "./simulation.ts";
import { isWaiting, type PlannedMember, type PlannedPod, Tally } from "./tally.ts";
import { podOf, podsOf, type WorkloadKind, workloadKind } from "./workloads.ts";
import { writtenClaim } from "./written-claims.ts";
import { isNamespace, withWrittenNamespaces } from "./written-namespaces.ts";
import { withWrittenRules } from "./written-rules.ts";

/** How a workload would fare. */
export type PlanOutcome =
  | "fits"
  | "waits" // some of its pods find no place
  | "refused" // it would not be let in
  | "notDelegated"; // its pods are the host's own

/** One object of the manifest. */
export interface WorkloadPlan {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly outcome: PlanOutcome;
  /** Why it is refused, or not delegated. */
  readonly message?: string;
  /** What admission would warn of. */
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
  readonly pods: readonly PlannedPod[];
  readonly clusters: readonly PlannedMember[];
}

/** What would become of a manifest. */
export interface Plan {
  /** Every pod of it has a place. */
  readonly fits: boolean;
  readonly workloads: readonly WorkloadPlan[];
  /** What the host cannot tell of a member, or of itself to this person, so that the answer is a guess there. */
  readonly guesses: readonly { readonly cluster?: string; readonly message: string }[];
}

/** Places all pods of a manifest, one after another in its order, in the host's state. Nothing outside is touched. */
export function planOf(
  objects: readonly WrittenObject[],
  host: HostState,
  options: {
    readonly namespace: string;
    readonly now: number;
    /** What the host has already of the manifest's workloads. */
    readonly existing?: readonly WrittenObject[];
    /** Pods of the manifest's namespaces that are no proxies. */
    readonly hostPods?: readonly Stored<Pod>[];
  },
): Plan {
  const { namespaces, refused } = withWrittenNamespaces(host.namespaces, objects);
  const rules = withWrittenRules(host.rules, objects, options.namespace);
  const simulation = new Simulation({ ...host, namespaces, ...(rules === undefined ? {} : { rules }) }, options.now);
  for (const object of objects) {
    const { name, namespace = options.namespace } = object.metadata;
    if (object.apiVersion === "v1" && object.kind === "PersistentVolumeClaim" && name !== undefined) {
      simulation.addClaim(namespace, name, writtenClaim(object));
    }
  }
  const present = [...host.proxies, ...(options.hostPods ?? [])];
  const made = new MadeNames();
  const workloads = objects.flatMap((object): WorkloadPlan[] => {
    if (isNamespace(object)) return refusedNamespace(object, refused);
    const kind = workloadKind(object);
    if (kind === undefined) return [];
    const namespace = object.metadata.namespace ?? options.namespace;
    const found = namespaces.find(({ metadata }) => metadata.name === namespace);
    const name = object.metadata.name ?? made.next(`${kind}/${namespace}`, object.metadata.generateName ?? "");
    const workload = { kind, namespace, name };
    const stored = options.existing?.find(
      (one) =>
        workloadKind(one) === kind &&
        one.metadata.name === object.metadata.name &&
        one.metadata.namespace === namespace,
    );
    if (found === undefined) return [withoutNamespace(workload, refused.has(namespace))];
    return [planWorkload(object, { workload, stored, namespace: found, present }, simulation)];
  });
  return {
    fits: workloads.every(({ outcome }) => outcome === "fits" || outcome === "notDelegated"),
    workloads,
    guesses: [
      ...(host.rules?.unread ?? []).map((message) => ({ message })),
      ...simulation.members.flatMap(({ name: cluster, guesses }) => guesses.map((message) => ({ cluster, message }))),
    ],
  };
}

const NOTHING = { warnings: [], notes: [], pods: [], clusters: [] } as const;

function refusedNamespace(
  { metadata: { name = "" } }: WrittenObject,
  refused: ReadonlyMap<string, string>,
): WorkloadPlan[] {
  const message = refused.get(name);
  if (message === undefined) return [];
  return [{ kind: "Namespace", namespace: name, name, outcome: "refused", message, ...NOTHING }];
}

function withoutNamespace(workload: NamedWorkload, isRefused: boolean): WorkloadPlan {
  const { namespace } = workload;
  const message = isRefused
    ? `namespace ${namespace} would be refused itself`
    : `namespace ${namespace} is neither on the host nor in the manifest; create it, or choose another with -n`;
  return { ...workload, outcome: "refused", message, ...NOTHING };
}

function planWorkload(
  written: WrittenObject,
  at: {
    readonly workload: NamedWorkload;
    readonly stored: WrittenObject | undefined;
    readonly namespace: Stored<Namespace>;
    /** Pods that may be its own. */
    readonly present: readonly Stored<Pod>[];
  },
  simulation: Simulation,
): WorkloadPlan {
  const { workload, stored, namespace, present } = at;
  const { kind } = workload;
  const plan = { ...workload, ...NOTHING };
  if (namespace.metadata.deletionTimestamp !== undefined) {
    const message = `namespace ${workload.namespace} is being deleted: nothing new is let in`;
    return { ...plan, outcome: "refused", message };
  }
  const mode = delegationModeOf(namespace.metadata.labels);
  if (mode === undefined) {
    const message = `namespace ${workload.namespace} has no label ${DELEGATION_LABEL}: its pods run on the host`;
    return { ...plan, outcome: "notDelegated", message };
  }
  const admitted =
    kind === "Pod" ? { object: written, warnings: [] } : admitWorkload(withStandingAnnotations(written, stored), mode);
  if (admitted.denied !== undefined) return { ...plan, outcome: "refused", message: admitted.denied };
  const warnings = new Set(admitted.warnings);
  if (kind === "DaemonSet") {
    return { ...plan, outcome: "notDelegated", message: "a DaemonSet runs on every node of the host itself" };
  }
  const object = asApplied(admitted.object, stored);
  const pods = podsOf(object, kind);
  const standing = standingOf(workload, object, stored, pods, present);
  const notes = new Set([...pods.notes, ...standing.notes]);
  const maker = makerOf(standing.kept);
  const made = (index: number): ReturnType<typeof admitPod> => admitPod(podOf(workload, pods, index, maker), mode);
  for (const pod of standing.leaving) simulation.remove(pod);
  if (!isDelegated(standing, made)) {
    // They count in quotas all the same.
    for (const index of standing.coming) {
      const own = made(index);
      if (own.denied !== undefined) continue;
      for (const warning of own.warnings) warnings.add(warning);
      simulation.admit(own.object);
    }
    const message = "its pods do not ask for delegation: they run on the host";
    return { ...plan, outcome: "notDelegated", message, warnings: [...warnings] };
  }
  const tally = new Tally(simulation.members.map(({ name }) => name));
  for (const pod of standing.kept) tally.keep(pod, placeOfKept(pod, simulation));
  for (const index of standing.coming) {
    // A StatefulSet's controller makes them before the pod.
    for (const claim of pods.claims ?? []) {
      simulation.addClaim(workload.namespace, `${claim.name}-${workload.name}-${index}`, claim.spec);
    }
    const refused = placeComing(made(index), { kind, warnings, notes, tally }, simulation);
    if (refused !== undefined) return { ...plan, outcome: "refused", message: refused, warnings: [...warnings] };
  }
  return {
    ...plan,
    outcome: tally.pods.some(isWaiting) ? "waits" : "fits",
    warnings: [...warnings],
    notes: [...notes],
    pods: tally.pods,
    clusters: tally.members(),
  };
}

/** Gives a pod that comes its place. Returns why the workload is refused for it, if it is. */
function placeComing(
  pod: ReturnType<typeof admitPod>,
  plan: {
    readonly kind: WorkloadKind;
    readonly warnings: Set<string>;
    readonly notes: Set<string>;
    readonly tally: Tally;
  },
  simulation: Simulation,
): string | undefined {
  if (pod.denied !== undefined) return pod.denied;
  for (const warning of pod.warnings) plan.warnings.add(warning);
  const letIn = simulation.admit(pod.object);
  if (letIn.refused !== undefined) {
    if (plan.kind === "Pod") return letIn.refused;
    // What a controller says of a pod that it could not create.
    plan.tally.add(pod.object.metadata.name, { reason: "FailedCreate", message: letIn.refused, others: [] });
    return undefined;
  }
  if (isOverflow(pod.object)) {
    plan.notes.add("the host's own scheduler is asked first: this is for pods that it has no room for");
  }
  plan.tally.add(letIn.pod.metadata.name, simulation.place(letIn.pod));
  return undefined;
}

/** In place of the names that the API server makes up: each is another. */
class MadeNames {
  readonly #counts = new Map<string, number>();

  next(scope: string, generateName: string): string {
    const key = `${scope}/${generateName}`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count === 1 ? `${generateName}*` : `${generateName}*${count}`;
  }
}

/** Whether the pods that come ask for delegation; where none comes, whether those that are there did. */
function isDelegated({ kept, coming }: Standing, made: (index: number) => ReturnType<typeof admitPod>): boolean {
  if (coming.length === 0 && kept.some((pod) => !isHostsOwn(pod))) return true;
  const next = made(coming[0] ?? kept.length);
  return next.denied !== undefined || next.delegated === true;
}

/** Where a pod goes that is there already and has no node. */
function placeOfKept(pod: Stored<Pod>, simulation: Simulation): Place | undefined {
  return isOverflow(pod) && !isBound(pod) ? simulation.place(pod) : simulation.placeOfWaiting(pod.metadata.uid);
}
