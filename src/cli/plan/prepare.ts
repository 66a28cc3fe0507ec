import { type DelegationMode, delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import type { Namespace, Pod, PodSpec, Stored } from "../../api/kubernetes.ts";
import { allDependenciesOf, type DependencyKey, type DependencyKind, dependencyKey } from "../../pods/dependencies.ts";
import { admitWorkload } from "./admission.ts";
import { asApplied, withStandingAnnotations } from "./applied.ts";
import { makerOf, type NamedWorkload, type Owner, podOf } from "./controller-pods.ts";
import type { WrittenObject } from "./documents.ts";
import { type Standing, standingOf } from "./existing.ts";
import { isNamespace, type PlannedNamespaces } from "./namespaces.ts";
import { NOTHING, type WorkloadPlan } from "./outcome.ts";
import type { ManifestState } from "./read-host.ts";
import type { HostState } from "./simulation.ts";
import { podsOf, type WorkloadPods, workloadKind } from "./workloads.ts";

/** Everything that a plan goes by but the answers to its dry-runs. */
export interface PlanInput {
  readonly objects: readonly WrittenObject[];
  readonly host: HostState;
  readonly namespaces: PlannedNamespaces;
  readonly found: ManifestState;
  /** Namespace of objects that name none. */
  readonly current: string;
  readonly now: number;
}

/** An object of the manifest before any pod is placed. */
export type Prepared =
  /** The workload's pods are not placed. */
  { readonly decided: WorkloadPlan } | ({ readonly decided?: never } & PreparedWorkload);

/** A workload in an opted-in namespace: pods that come, stay and go. */
export interface PreparedWorkload {
  readonly workload: NamedWorkload;
  readonly mode: DelegationMode;
  readonly pods: WorkloadPods;
  readonly standing: Standing;
  /** The controller that makes its pods, when that exists. */
  readonly maker: Owner | undefined;
  readonly warnings: readonly string[];
  /** The pod to ask the API server about: the others differ by name only. Absent: none comes. */
  readonly question?: Question;
}

/** A pod for a dry-run. */
export type Question =
  | { readonly notAsked: string }
  | {
      readonly notAsked?: never;
      readonly pod: Pod;
      /** Names left out of its spec, since the manifest creates these objects. */
      readonly withheld: Partial<PodSpec>;
    };

/** Compares each workload of a manifest with the host, and runs the webhook's code on it. */
export function prepare({ objects, host, namespaces: planned, found, current }: PlanInput): Prepared[] {
  const { namespaces, refused, changed } = planned;
  const { existing, coming, hostPods } = found;
  const present = [...host.proxies, ...hostPods];
  const madeNames = new MadeNames();
  return objects.flatMap((object): Prepared[] => {
    if (isNamespace(object)) return refusedNamespace(object, refused);
    const kind = workloadKind(object);
    if (kind === undefined) return [];
    const { metadata } = object;
    const namespace = metadata.namespace ?? current;
    const name = metadata.name ?? madeNames.next(`${kind}/${namespace}`, metadata.generateName ?? "");
    const workload = { kind, namespace, name };
    const own = namespaces.find((one) => one.metadata.name === namespace);
    if (own === undefined) return [refusedFor(workload, missingNamespace(namespace, refused))];
    const stored = existing.find(
      (one) =>
        workloadKind(one) === kind && one.metadata.name === metadata.name && one.metadata.namespace === namespace,
    );
    const prepared = prepareWorkload(object, workload, stored, own, present);
    if (prepared.decided !== undefined || prepared.standing.coming.length === 0) return [prepared];
    const question = changed.has(namespace)
      ? { notAsked: "the manifest creates or changes the namespace" }
      : questionOf(prepared, metadata, coming);
    return [{ ...prepared, question }];
  });
}

function prepareWorkload(
  written: WrittenObject,
  workload: NamedWorkload,
  stored: WrittenObject | undefined,
  { metadata }: Stored<Namespace>,
  present: readonly Stored<Pod>[],
): Prepared {
  const { kind, namespace } = workload;
  if (metadata.deletionTimestamp !== undefined) {
    return refusedFor(workload, `namespace ${namespace} is being deleted: nothing new is let in`);
  }
  const mode = delegationModeOf(metadata.labels);
  if (mode === undefined) {
    return notDelegated(workload, `namespace ${namespace} has no label ${DELEGATION_LABEL}: its pods run on the host`);
  }
  const admitted =
    kind === "Pod" ? { object: written, warnings: [] } : admitWorkload(withStandingAnnotations(written, stored), mode);
  if (admitted.denied !== undefined) return refusedFor(workload, admitted.denied);
  const { warnings } = admitted;
  if (kind === "DaemonSet") {
    return notDelegated(workload, "a DaemonSet runs on every node of the host itself", warnings);
  }
  const object = asApplied(admitted.object, stored);
  const pods = podsOf(object, kind);
  const standing = standingOf(workload, object, stored, pods, present);
  return { workload, mode, pods, standing, maker: makerOf(standing.kept), warnings };
}

/** Returns the first pod that comes, as its controller would send it. */
function questionOf(
  { workload, pods, standing, maker }: PreparedWorkload,
  written: WrittenObject["metadata"],
  coming: ReadonlySet<DependencyKey>,
): Question {
  const pod = podOf(workload, pods, standing.coming[0] ?? 0, maker);
  const { name, uid: _, resourceVersion: __, ...metadata } = pod.metadata;
  // The pod of a StatefulSet that is replaced exists under its name until it has gone.
  const { name: ownName, generateName = name.replace(/\*?\d*$/, "") } = workload.kind === "Pod" ? written : {};
  const named = ownName === undefined ? { generateName } : { name: ownName };
  const withheld: Record<string, string> = {};
  for (const dependency of allDependenciesOf(pod)) {
    const field = NAMING_FIELDS[dependency.kind];
    if (field !== undefined && coming.has(dependencyKey(dependency))) withheld[field] = dependency.name;
  }
  const spec = Object.fromEntries(Object.entries(pod.spec ?? {}).filter(([field]) => !(field in withheld)));
  return { pod: { ...pod, metadata: { ...metadata, ...named }, spec: { containers: [], ...spec } }, withheld };
}

const NAMING_FIELDS: Partial<Record<DependencyKind, keyof PodSpec>> = {
  ServiceAccount: "serviceAccountName",
  PriorityClass: "priorityClassName",
  RuntimeClass: "runtimeClassName",
};

function refusedFor(workload: NamedWorkload, message: string): { readonly decided: WorkloadPlan } {
  return { decided: { ...workload, ...NOTHING, outcome: "refused", message } };
}

function notDelegated(workload: NamedWorkload, message: string, warnings: readonly string[] = []): Prepared {
  return { decided: { ...workload, ...NOTHING, outcome: "notDelegated", message, warnings } };
}

function refusedNamespace(
  { metadata: { name = "" } }: WrittenObject,
  refused: ReadonlyMap<string, string>,
): Prepared[] {
  const message = refused.get(name);
  if (message === undefined) return [];
  return [{ decided: { kind: "Namespace", namespace: name, name, ...NOTHING, outcome: "refused", message } }];
}

function missingNamespace(namespace: string, refused: ReadonlyMap<string, string>): string {
  return refused.has(namespace)
    ? `namespace ${namespace} would be refused itself`
    : `namespace ${namespace} is neither on the host nor in the manifest; create it, or choose another with -n`;
}

/** Stands in for the names that the API server makes up: each is another. */
class MadeNames {
  readonly #counts = new Map<string, number>();

  next(scope: string, generateName: string): string {
    const key = `${scope}/${generateName}`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count === 1 ? `${generateName}*` : `${generateName}*${count}`;
  }
}
