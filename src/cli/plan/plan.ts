import { DELEGATION_LABEL } from "../../api/keys.ts";
import type { Namespace, Stored } from "../../api/kubernetes.ts";
import { admitPod, admitWorkload, delegationMode } from "./admission.ts";
import type { WrittenObject } from "./documents.ts";
import { type HostState, type Place, Simulation } from "./simulation.ts";
import { podOf, podsOf, type WorkloadKind, workloadKind } from "./workloads.ts";

/** One pod of a workload, and where it goes. */
export type PlannedPod = { readonly name: string } & Omit<Place, "others">;

/** One member, as far as one workload is concerned. */
export interface PlannedMember {
  readonly cluster: string;
  /** How many of the pods run there. */
  readonly pods: number;
  /** How many wait there for room. */
  readonly waiting: number;
  /** Why others of the pods do not go there. */
  readonly whyNot: readonly { readonly reason: string; readonly message: string; readonly pods: number }[];
}

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
  /** What the host cannot tell, so that the answer is a guess there. */
  readonly guesses: readonly { readonly cluster: string; readonly message: string }[];
}

/** Places all pods of a manifest, one after another in its order, in the host's state. Nothing outside is touched. */
export function planOf(
  objects: readonly WrittenObject[],
  host: HostState,
  options: { readonly namespace: string; readonly now: number },
): Plan {
  const namespaces = withWritten(host.namespaces, objects);
  const simulation = new Simulation({ ...host, namespaces }, options.now);
  const workloads = objects.flatMap((object) => {
    const kind = workloadKind(object);
    if (kind === undefined) return [];
    const namespace = object.metadata.namespace ?? options.namespace;
    const found = namespaces.find(({ metadata }) => metadata.name === namespace);
    return [planWorkload(object, kind, namespace, found, simulation)];
  });
  return {
    fits: workloads.every(({ outcome }) => outcome === "fits" || outcome === "notDelegated"),
    workloads,
    guesses: simulation.members.flatMap(({ name: cluster, guesses }) =>
      guesses.map((message) => ({ cluster, message })),
    ),
  };
}

function planWorkload(
  written: WrittenObject,
  kind: WorkloadKind,
  namespace: string,
  found: Stored<Namespace> | undefined,
  simulation: Simulation,
): WorkloadPlan {
  const { name = `${written.metadata.generateName}*` } = written.metadata;
  const plan = { kind, namespace, name, warnings: [], notes: [], pods: [], clusters: [] };
  if (found === undefined) {
    const message = `namespace ${namespace} is neither on the host nor in the manifest; create it, or choose another with -n`;
    return { ...plan, outcome: "refused", message };
  }
  const mode = delegationMode(found);
  if (mode === undefined) {
    const message = `namespace ${namespace} has no label ${DELEGATION_LABEL}: its pods run on the host`;
    return { ...plan, outcome: "notDelegated", message };
  }
  const workload = kind === "Pod" ? { object: written, warnings: [] } : admitWorkload(written);
  if (workload.denied !== undefined) return { ...plan, outcome: "refused", message: workload.denied };
  const warnings = new Set(workload.warnings);
  if (kind === "DaemonSet") {
    return { ...plan, outcome: "notDelegated", message: "a DaemonSet runs on every node of the host itself" };
  }
  const pods = podsOf(workload.object, kind);
  const { notes } = pods;
  const tally = new Tally(simulation.members.map((member) => member.name));
  for (let index = 0; index < pods.replicas; index++) {
    const pod = admitPod(podOf({ kind, namespace, name }, pods, index), mode);
    if (pod.denied !== undefined) return { ...plan, outcome: "refused", message: pod.denied, warnings: [...warnings] };
    for (const warning of pod.warnings) warnings.add(warning);
    if (pod.delegated !== true) {
      const message = "its pods do not ask for delegation: they run on the host";
      return { ...plan, outcome: "notDelegated", message, warnings: [...warnings] };
    }
    tally.add(pod.object.metadata.name, simulation.place(pod.object));
  }
  return {
    ...plan,
    outcome: tally.pods.every(({ cluster }) => cluster !== undefined) ? "fits" : "waits",
    warnings: [...warnings],
    notes,
    pods: tally.pods,
    clusters: tally.members(),
  };
}

/** Sums up the places of one workload's pods by member. */
class Tally {
  readonly pods: PlannedPod[] = [];
  readonly #clusters: readonly string[];
  readonly #whyNot = new Map<string, Map<string, { message: string; pods: number }>>();

  constructor(clusters: readonly string[]) {
    this.#clusters = clusters;
  }

  add(name: string, { others, ...place }: Place): void {
    this.pods.push({ name, ...place });
    for (const { cluster, reason, message } of others) {
      const reasons = this.#whyNot.get(cluster) ?? new Map<string, { message: string; pods: number }>();
      // What is left of a member changes with each pod: the last word is the one that stands.
      reasons.set(reason, { message, pods: (reasons.get(reason)?.pods ?? 0) + 1 });
      this.#whyNot.set(cluster, reasons);
    }
  }

  /** Members in order, and names that are none. */
  members(): PlannedMember[] {
    const names = [...new Set([...this.#clusters, ...this.#whyNot.keys()])].sort();
    return names.map((cluster) => ({
      cluster,
      pods: this.pods.filter((pod) => pod.cluster === cluster).length,
      waiting: this.pods.filter(({ waitsIn }) => waitsIn === cluster).length,
      whyNot: [...(this.#whyNot.get(cluster) ?? [])].map(([reason, known]) => ({ reason, ...known })),
    }));
  }
}

/** The host's namespaces as they will be when those of the manifest are applied. */
function withWritten(
  stored: readonly Stored<Namespace>[],
  objects: readonly WrittenObject[],
): readonly Stored<Namespace>[] {
  const all = new Map(stored.map((namespace) => [namespace.metadata.name, namespace]));
  for (const { apiVersion, kind, metadata } of objects) {
    const { name } = metadata;
    if (apiVersion !== "v1" || kind !== "Namespace" || name === undefined) continue;
    const before = all.get(name)?.metadata ?? { name, uid: `planned/${name}`, resourceVersion: "0" };
    all.set(name, {
      metadata: {
        ...before,
        labels: { ...before.labels, ...metadata.labels },
        annotations: { ...before.annotations, ...metadata.annotations },
      },
    });
  }
  return [...all.values()];
}
