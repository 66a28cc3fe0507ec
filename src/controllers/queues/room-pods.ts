import type { DelegationMode } from "../../api/delegation-mode.ts";
import { CLUSTER_ANNOTATION, GROUP_ANNOTATION, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { Pod, PodSpec, Stored } from "../../api/kubernetes.ts";
import { PODSET_LABEL, type ResourceFlavor } from "../../api/kueue.ts";
import {
  type PodSet,
  type PodSetAssignment,
  type TopologyAssignment,
  type TopologyValues,
  WORKLOAD_ANNOTATION,
  type Workload,
} from "../../api/kueue-workload.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { controllerOf, isGated, isLive } from "../../pods/pod-state.ts";
import { isProxy, toProxy } from "../../pods/proxy.ts";
import { type Admitted, admitPod } from "../../simulation/admission.ts";
import type { WholeWork } from "../../whole/type.ts";

type Labels = Readonly<Record<string, string>>;

/** Completes a pod's spec as the host's admission does. */
export type CompleteSpec = (spec: PodSpec) => PodSpec;

export interface PodSources {
  readonly flavor: (name: string) => ResourceFlavor | undefined;
  readonly complete: CompleteSpec;
  /** Returns what goes to members whole, by its uid. */
  readonly whole: (uid: string) => WholeWork | undefined;
}

/** Pods of a pod set that are still to come. */
export interface ComingPods {
  readonly podSet: string;
  readonly pods: readonly Stored<Pod>[];
}

/** The pods of a workload that are still to come and that members get. */
export type Coming =
  | { readonly sets: readonly ComingPods[]; readonly hostFirst: boolean }
  /** Legation's admission would refuse them. */
  | { readonly denied: string };

/** Makes the pods that Kueue's start of the workload brings, without those that are there. */
export function comingPods(
  workload: Stored<Workload>,
  present: readonly Stored<Pod>[],
  mode: DelegationMode,
  sources: PodSources,
): Coming {
  const sets: ComingPods[] = [];
  let hostFirst = false;
  const podSets = workload.spec?.podSets ?? [];
  const whole = workload.metadata.ownerReferences?.map(({ uid }) => sources.whole(uid)).find((work) => work);
  for (const podSet of podSets) {
    const assignment = workload.status?.admission?.podSetAssignments?.find(({ name }) => name === podSet.name);
    const counts = whole ?? countsOf(ofPodSet(podSet, present, podSets.length === 1));
    let missing = missingCount(workload, podSet, assignment, counts);
    const pods: Stored<Pod>[] = [];
    for (const { selector, count } of domainsOf(assignment?.topologyAssignment, missing)) {
      const taken = Math.min(count, missing);
      if (taken === 0) continue;
      missing -= taken;
      const pod = podOf(workload, podSet, { assignment, selector, sources });
      const admitted: Admitted<Stored<Pod>> =
        whole === undefined ? admitPod(pod, mode) : { object: inWhole(pod, whole), warnings: [] };
      if (admitted.denied !== undefined) return { denied: admitted.denied };
      if (isOverflow(admitted.object)) hostFirst = true;
      else if (isProxy(admitted.object)) {
        pods.push(...copies(grouped(admitted.object, podSet, workload), pods.length, taken));
      }
    }
    if (pods.length > 0) sets.push({ podSet: podSet.name, pods });
  }
  return { sets, hostFirst };
}

/** Returns the workload's pods among all proxies: made by its owner, or named by Kueue. */
export function podsOf(workload: Stored<Workload>, find: (value: string) => readonly Stored<Pod>[]): Stored<Pod>[] {
  const { namespace = "", name, ownerReferences = [] } = workload.metadata;
  const found = [...ownerReferences.map(({ uid }) => uid), `${namespace}/${name}`].flatMap(find);
  return [...new Set(found)];
}

/** Index values by which `podsOf` finds a pod. */
export function workloadsOfPod(pod: Stored<Pod>): string[] {
  const { uid, namespace = "", annotations } = pod.metadata;
  const named = annotations?.[WORKLOAD_ANNOTATION];
  const owner = controllerOf(pod)?.uid;
  return [uid, ...(owner === undefined ? [] : [owner]), ...(named === undefined ? [] : [`${namespace}/${named}`])];
}

function ofPodSet({ name }: PodSet, present: readonly Stored<Pod>[], isOnly: boolean): Stored<Pod>[] {
  return present.filter(({ metadata }) => isOnly || metadata.labels?.[PODSET_LABEL] === name);
}

interface PodCounts {
  readonly live: number;
  readonly succeeded: number;
}

function countsOf(own: readonly Stored<Pod>[]): PodCounts {
  return {
    // A gated pod has no place yet.
    live: own.filter((pod) => isLive(pod) && !isGated(pod)).length,
    succeeded: own.filter((pod) => pod.status?.phase === "Succeeded").length,
  };
}

function missingCount(
  { status }: Stored<Workload>,
  podSet: PodSet,
  assignment: PodSetAssignment | undefined,
  { live, succeeded }: PodCounts,
): number {
  const reclaimed = status?.reclaimablePods?.find(({ name }) => name === podSet.name)?.count ?? 0;
  // Kueue counts pods that succeeded as reclaimable, some moments later.
  return Math.max(0, (assignment?.count ?? podSet.count) - live - Math.max(reclaimed, succeeded));
}

interface PodParts {
  readonly assignment: PodSetAssignment | undefined;
  readonly selector: Labels;
  readonly sources: PodSources;
}

/** Makes a pod of the pod set as Kueue has its owner make it (pkg/podset in Kueue). */
function podOf(
  workload: Stored<Workload>,
  podSet: PodSet,
  { assignment, selector, sources: { flavor, complete } }: PodParts,
): Stored<Pod> {
  const { namespace, name, uid, ownerReferences = [] } = workload.metadata;
  const { metadata = {}, spec = { containers: [] } } = podSet.template;
  const flavors = [...new Set(Object.values(assignment?.flavors ?? {}))].map((one) => flavor(one)?.spec);
  const updates = (workload.status?.admissionChecks ?? []).flatMap(({ podSetUpdates = [] }) =>
    podSetUpdates.filter((update) => update.name === podSet.name),
  );
  const merged = [
    ...flavors.map((one) => ({ nodeSelector: one?.nodeLabels, tolerations: one?.tolerations })),
    ...updates,
  ];
  const { schedulingGates: _, ...ungated } = spec;
  const owner = ownerReferences.find(({ controller }) => controller === true);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      namespace: namespace ?? "",
      name: `${name}-${podSet.name}`,
      uid: `queued/${uid}/${podSet.name}`,
      resourceVersion: "0",
      labels: { ...metadata.labels, ...mergedOf(updates.map(({ labels }) => labels)), [PODSET_LABEL]: podSet.name },
      annotations: { ...metadata.annotations, ...mergedOf(updates.map(({ annotations }) => annotations)) },
      ...(owner === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec: complete({
      ...ungated,
      nodeSelector: { ...spec.nodeSelector, ...mergedOf(merged.map(({ nodeSelector }) => nodeSelector)), ...selector },
      tolerations: [...(spec.tolerations ?? []), ...merged.flatMap(({ tolerations = [] }) => tolerations)],
    }),
  };
}

/** Returns a pod of what goes to members whole: by its annotations, and in one member unless it is divided. */
function inWhole(pod: Stored<Pod>, { uid, annotations: written, members, isDivided }: WholeWork): Stored<Pod> {
  const { [CLUSTER_ANNOTATION]: _, ...annotations } = written;
  const together = isDivided ? {} : { [GROUP_ANNOTATION]: uid };
  const pinned = members.length === 1 ? { [VIRTUAL_NODE_LABEL]: members[0] ?? "" } : {};
  const marked = toProxy({
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...annotations, ...together } },
    spec: { containers: [], ...pod.spec, nodeSelector: { ...pod.spec?.nodeSelector, ...pinned } },
  });
  return { ...marked, metadata: { ...pod.metadata, ...marked.metadata } };
}

function mergedOf(parts: readonly (Labels | undefined)[]): Labels {
  return Object.assign({}, ...parts);
}

/** A pod set that is to run in one topology domain is a group where the domain is a member. */
function grouped(pod: Stored<Pod>, { name, topologyRequest }: PodSet, workload: Stored<Workload>): Stored<Pod> {
  if (topologyRequest?.required !== VIRTUAL_NODE_LABEL) return pod;
  // No longer than a group's name may be.
  const group = `${name.slice(0, 26)}.${workload.metadata.uid}`;
  const annotations = { [GROUP_ANNOTATION]: group, ...pod.metadata.annotations };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

/** Returns the node selectors that Kueue gives the pods, with their counts. */
function domainsOf(
  topology: TopologyAssignment | undefined,
  all: number,
): readonly { readonly selector: Labels; readonly count: number }[] {
  if (topology === undefined) return [{ selector: {}, count: all }];
  const { levels, slices = [], domains } = topology;
  const assigned = slices.flatMap(({ domainCount, valuesPerLevel, podCounts }) =>
    Array.from({ length: domainCount }, (_, domain) => ({
      values: levels.map((_level, index) => valueIn(valuesPerLevel[index], domain)),
      count: podCounts.universal ?? podCounts.individual?.[domain] ?? 0,
    })),
  );
  return (domains ?? assigned).map(({ values, count }) => {
    const selector = levels.map((level, index) => [level, values[index] ?? ""]);
    return { selector: Object.fromEntries(selector), count };
  });
}

function valueIn({ universal, individual }: TopologyValues = {}, domain: number): string {
  const { prefix = "", suffix = "", roots = [] } = individual ?? {};
  return universal ?? `${prefix}${roots[domain] ?? ""}${suffix}`;
}

/** Pods of one pod set differ by name only. */
function copies(pod: Stored<Pod>, from: number, count: number): Stored<Pod>[] {
  const { metadata } = pod;
  return Array.from({ length: count }, (_, index) => {
    const suffix = `-${from + index}`;
    return { ...pod, metadata: { ...metadata, name: metadata.name + suffix, uid: metadata.uid + suffix } };
  });
}
