import { type DelegationMode, delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import type { Pod, PodSpec, Stored } from "../../api/kubernetes.ts";
import { allDependenciesOf, type DependencyKind, dependencyKey } from "../../pods/dependencies.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isBound } from "../../pods/pod-state.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { type Admitted, type Answer, admitPod, admitWorkload, isDelegated } from "./admission.ts";
import { asApplied, withStandingAnnotations } from "./applied.ts";
import { writtenClaim } from "./claims.ts";
import { makerOf, type NamedWorkload, type Owner, podOf } from "./controller-pods.ts";
import { isHostsOwn, type Standing, standingOf } from "./existing.ts";
import { isNamespace, type PlannedNamespaces } from "./namespaces.ts";
import { isWaiting, NOTHING, type Plan, type PlannedPod, plannedMembers, type WorkloadPlan } from "./outcome.ts";
import { hasScopes, Quotas } from "./quotas.ts";
import type { ManifestState } from "./read-host.ts";
import { type HostState, type Place, Simulation } from "./simulation.ts";
import { podsOf, type WorkloadPods, workloadKind } from "./workloads.ts";

/** Everything that a plan goes by. */
export interface PlanInput {
  readonly objects: readonly WrittenObject[];
  readonly host: HostState;
  readonly namespaces: PlannedNamespaces;
  readonly found: ManifestState;
  /** Namespace of objects that name none. */
  readonly current: string;
  readonly now: number;
  /** Asks the API server about a pod by dry-run. */
  readonly ask: (pod: Pod) => Promise<Answer<Stored<Pod>>>;
}

/**
 * Places all pods of a manifest, one after another in its order, in the host's state: as the API server has admitted them, or as
 * Legation's webhook alone would where it was not asked.
 */
export async function planOf(input: PlanInput): Promise<Plan> {
  const planner = new Planner(input);
  // The API server is asked about all objects at once; pods are placed in the manifest's order.
  let placed: Promise<unknown> = Promise.resolve();
  const plans = input.objects.map((object) => {
    const earlier = placed;
    // A refused object has its plan at once, and does not let later ones pass.
    const plan = planner.plan(object, earlier).then(async (planned) => {
      await earlier;
      return planned;
    });
    placed = plan;
    return plan;
  });
  const workloads = (await Promise.all(plans)).flat();
  return {
    fits: workloads.every(({ outcome }) => outcome === "fits" || outcome === "notDelegated"),
    workloads,
    guesses: planner.simulation.members.flatMap(({ name: cluster, guesses }) =>
      guesses.map((message) => ({ cluster, message })),
    ),
    notChecked: [...planner.notChecked],
  };
}

/** Names the limits that dry-runs do not apply. */
function limitNotes({ objects, found: { quotas }, current }: PlanInput): string[] {
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

/** A workload in an opted-in namespace: pods that come, stay and go. */
interface ComingWorkload {
  readonly workload: NamedWorkload;
  readonly mode: DelegationMode;
  readonly pods: WorkloadPods;
  readonly standing: Standing;
  /** The controller that makes its pods, when that exists. */
  readonly maker: Owner | undefined;
}

/** The pods that come, by index or ordinal, after admission. */
interface ComingPods {
  readonly podAt: (index: number) => Admitted<Stored<Pod>>;
  /** Why the API server refuses each of them. */
  readonly refused?: string;
  /** The check that was not made, with the reason. */
  readonly notChecked?: string;
}

type Outcome = Pick<WorkloadPlan, "outcome"> & Partial<WorkloadPlan>;

const NOT_RUN = "defaults, LimitRanges, quotas, Pod Security, policies and webhooks";

/** The host's state as the objects of a manifest change it one after another. */
class Planner {
  readonly simulation: Simulation;
  readonly notChecked: Set<string>;
  readonly #input: PlanInput;
  readonly #quotas: Quotas;
  readonly #generated = new Map<string, number>();

  constructor(input: PlanInput) {
    const { objects, host, namespaces: planned, found, current, now } = input;
    const { claims, missing, quotas } = found;
    this.#input = input;
    this.#quotas = new Quotas(quotas);
    this.notChecked = new Set([...planned.notChecked, ...found.notChecked, ...limitNotes(input)]);
    this.simulation = new Simulation({ ...host, namespaces: planned.namespaces, claims, missing }, now);
    for (const object of objects) {
      const { name, namespace = current } = object.metadata;
      if (object.apiVersion === "v1" && object.kind === "PersistentVolumeClaim" && name !== undefined) {
        this.simulation.addClaim(namespace, name, writtenClaim(object));
      }
    }
  }

  /**
   * Plans one object, and places its pods once the `earlier` objects' are placed. Returns nothing for an object without pods, and for
   * a Namespace that is not refused.
   */
  async plan(object: WrittenObject, earlier: Promise<unknown>): Promise<WorkloadPlan[]> {
    const { namespaces, current } = this.#input;
    const { name, generateName = "", namespace = current } = object.metadata;
    if (isNamespace(object)) {
      const message = namespaces.refused.get(name ?? "");
      if (name === undefined || message === undefined) return [];
      return [{ kind: "Namespace", namespace: name, name, ...NOTHING, outcome: "refused", message }];
    }
    const kind = workloadKind(object);
    if (kind === undefined) return [];
    const workload = { kind, namespace, name: name ?? this.#nextName(`${kind}/${namespace}`, generateName) };
    return [{ ...workload, ...NOTHING, ...(await this.#outcomeOf(workload, object, earlier)) }];
  }

  /** Stands in for the names that the API server makes up: each is another. */
  #nextName(scope: string, generateName: string): string {
    const key = `${scope}/${generateName}`;
    const count = (this.#generated.get(key) ?? 0) + 1;
    this.#generated.set(key, count);
    return count === 1 ? `${generateName}*` : `${generateName}*${count}`;
  }

  async #outcomeOf(workload: NamedWorkload, written: WrittenObject, earlier: Promise<unknown>): Promise<Outcome> {
    const { kind, namespace } = workload;
    const { host, found } = this.#input;
    const { namespaces, refused } = this.#input.namespaces;
    const own = namespaces.find(({ metadata }) => metadata.name === namespace);
    if (own === undefined) {
      const message = refused.has(namespace)
        ? `namespace ${namespace} would be refused itself`
        : `namespace ${namespace} is neither on the host nor in the manifest; create it, or choose another with -n`;
      return { outcome: "refused", message };
    }
    if (own.metadata.deletionTimestamp !== undefined) {
      return { outcome: "refused", message: `namespace ${namespace} is being deleted: nothing new is let in` };
    }
    const mode = delegationModeOf(own.metadata.labels);
    if (mode === undefined) {
      const message = `namespace ${namespace} has no label ${DELEGATION_LABEL}: its pods run on the host`;
      return { outcome: "notDelegated", message };
    }
    const { name } = written.metadata;
    const stored = found.existing.find(
      (one) => workloadKind(one) === kind && one.metadata.name === name && one.metadata.namespace === namespace,
    );
    // Legation's webhook reviews a Pod when the pod itself is asked about.
    const unreviewed: Admitted<WrittenObject> = { object: written, warnings: [] };
    const admitted = kind === "Pod" ? unreviewed : admitWorkload(withStandingAnnotations(written, stored), mode);
    if (admitted.denied !== undefined) return { outcome: "refused", message: admitted.denied };
    const { warnings } = admitted;
    if (kind === "DaemonSet") {
      return { outcome: "notDelegated", message: "a DaemonSet runs on every node of the host itself", warnings };
    }
    const object = asApplied(admitted.object, stored);
    const pods = podsOf(object, kind);
    const standing = standingOf(workload, object, stored, pods, [...host.proxies, ...found.hostPods]);
    const coming = { workload, mode, pods, standing, maker: makerOf(standing.kept) };
    const comingPods = await this.#admit(coming, written.metadata);
    await earlier;
    return this.#place(coming, comingPods, warnings);
  }

  /** Asks the API server about the first pod that comes: the others differ by name only. */
  async #admit(coming: ComingWorkload, written: WrittenObject["metadata"]): Promise<ComingPods> {
    const { workload, mode, pods, standing, maker } = coming;
    const { kind, namespace, name } = workload;
    const podAt = (index: number): Admitted<Stored<Pod>> => admitPod(podOf(workload, pods, index, maker), mode);
    if (standing.coming.length === 0) return { podAt };
    if (this.#input.namespaces.changed.has(namespace)) {
      const notChecked = `${NOT_RUN} in namespace ${namespace}: the manifest creates or changes the namespace`;
      return { podAt, notChecked };
    }
    const { pod, withheld } = this.#questionOf(coming, written);
    const answer = await this.#input.ask(pod);
    const notRun = (why: string): ComingPods => ({
      podAt,
      notChecked: `${NOT_RUN} for ${kind} ${namespace}/${name}: ${why}`,
    });
    if (answer.is === "notChecked") return notRun(answer.why);
    if (answer.is === "refused") {
      if (!answer.ofQuota || standing.leaving.length === 0) return { podAt, refused: answer.message };
      return notRun(`${answer.message}, until the pods that go have gone`);
    }
    const names = Object.values(withheld).join(" and ");
    const leftOut = `pods of ${kind} ${namespace}/${name} with ${names}: created by the manifest, so left out of the dry-run`;
    const { metadata, spec = { containers: [] } } = answer.object;
    const admitted = { ...pods, metadata, spec: { ...spec, ...withheld } };
    return {
      podAt: (index) => {
        const { warnings = [] } = podAt(index);
        return { object: podOf(workload, admitted, index, maker), warnings };
      },
      ...(names === "" ? {} : { notChecked: leftOut }),
    };
  }

  /** Returns the first pod that comes as its controller would send it, without names of objects that the manifest creates. */
  #questionOf(
    { workload, pods, standing, maker }: ComingWorkload,
    written: WrittenObject["metadata"],
  ): { readonly pod: Pod; readonly withheld: Partial<PodSpec> } {
    const pod = podOf(workload, pods, standing.coming[0] ?? 0, maker);
    const { name, uid: _, resourceVersion: __, ...metadata } = pod.metadata;
    // The pod of a StatefulSet that is replaced exists under its name until it has gone.
    const { name: ownName, generateName = name.replace(/\*?\d*$/, "") } = workload.kind === "Pod" ? written : {};
    const named = ownName === undefined ? { generateName } : { name: ownName };
    const withheld: Record<string, string> = {};
    for (const dependency of allDependenciesOf(pod)) {
      const field = NAMING_FIELDS[dependency.kind];
      const isComing = this.#input.found.coming.has(dependencyKey(dependency));
      if (field !== undefined && isComing) withheld[field] = dependency.name;
    }
    const spec = Object.fromEntries(Object.entries(pod.spec ?? {}).filter(([field]) => !(field in withheld)));
    return { pod: { ...pod, metadata: { ...metadata, ...named }, spec: { containers: [], ...spec } }, withheld };
  }

  #place(coming: ComingWorkload, comingPods: ComingPods, reviewed: readonly string[]): Outcome {
    const { workload, pods, standing } = coming;
    const { podAt, refused, notChecked } = comingPods;
    if (notChecked !== undefined) this.notChecked.add(notChecked);
    for (const pod of standing.leaving) {
      this.#quotas.release(pod);
      this.simulation.remove(pod);
    }
    const warnings = new Set(reviewed);
    if (!asksForDelegation(coming, podAt)) {
      // Pods that stay on the host count in quotas, too.
      for (const index of standing.coming) {
        const own = podAt(index);
        if (own.denied !== undefined) continue;
        for (const warning of own.warnings) warnings.add(warning);
        this.#quotas.admit(own.object);
      }
      const message = "its pods do not ask for delegation: they run on the host";
      return { outcome: "notDelegated", message, warnings: [...warnings] };
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
      else add(kept, placeOfKept(pod, this.simulation));
    }
    for (const index of standing.coming) {
      // The StatefulSet controller creates claims before the pod.
      for (const claim of pods.claims ?? []) {
        this.simulation.addClaim(workload.namespace, `${claim.name}-${workload.name}-${index}`, claim.spec);
      }
      const pod = podAt(index);
      if (pod.denied !== undefined) return { outcome: "refused", message: pod.denied, warnings: [...warnings] };
      const { name } = pod.object.metadata;
      for (const warning of pod.warnings) warnings.add(warning);
      const message = refused ?? this.#quotas.admit(pod.object);
      if (message === undefined) {
        if (isOverflow(pod.object)) notes.add(HOST_FIRST);
        add({ name }, this.simulation.place(pod.object));
      } else if (workload.kind === "Pod") return { outcome: "refused", message, warnings: [...warnings] };
      // The reason is that of a controller's event for a pod that it could not create.
      else add({ name }, { reason: "FailedCreate", message, others: [] });
    }
    const members = this.simulation.members.map(({ name }) => name);
    return {
      outcome: placed.some(isWaiting) ? "waits" : "fits",
      warnings: [...warnings],
      notes: [...notes],
      pods: placed,
      clusters: plannedMembers(members, placed, whyNot),
    };
  }
}

const HOST_FIRST = "the host's own scheduler is asked first: this is for pods that it has no room for";

const NAMING_FIELDS: Partial<Record<DependencyKind, keyof PodSpec>> = {
  ServiceAccount: "serviceAccountName",
  PriorityClass: "priorityClassName",
  RuntimeClass: "runtimeClassName",
};

/** Reports whether the pods that come ask for delegation; where none comes, whether those that stay did. */
function asksForDelegation({ standing: { kept, coming } }: ComingWorkload, podAt: ComingPods["podAt"]): boolean {
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
