import type { Pod, Stored } from "../../api/kubernetes.ts";
import { memberOf } from "../../pods/proxy.ts";
import { type WishingWorkload, workloadKey } from "../../scheduling/workload.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { type SimulatedPlace, Simulation } from "../../simulation/simulation.ts";
import type { Declined } from "../../whole/type.ts";
import { among } from "../simulation/host-state.ts";
import type { WrittenWorkload } from "./manifest.ts";
import { dividedServices } from "./networks.ts";
import { emptyPlan, isWaiting, type Plan, type PlannedPod, plannedMembers, type WorkloadPlan } from "./outcome.ts";
import { type Reviewed, type ReviewInput, review } from "./review.ts";
import { placeWhole, type ReviewedWhole } from "./whole.ts";

export interface PlanInput extends ReviewInput {
  readonly workloads: readonly WrittenWorkload[];
  readonly objects: readonly ReviewedWhole[];
  readonly host: HostState;
  readonly now: number;
}

/** Places the pods that a manifest's workloads want, in its order, as if these workloads had none yet. */
export async function planOf(input: PlanInput): Promise<Plan> {
  const { workloads, objects, host, namespaces, found, now } = input;
  const reviewed = await Promise.all(workloads.map((workload) => review(workload, input)));
  const replanned = new Set(
    reviewed.flatMap(({ pods, currentPods }) => (pods.length === 0 ? [] : currentPods.map(uidOf))),
  );
  const proxies = host.proxies.filter((proxy) => !replanned.has(uidOf(proxy)));
  const { claims, missing, objects: named } = found;
  const planned = reviewed.flatMap(({ plan: { namespace }, wishing }) =>
    wishing === undefined ? [] : [[workloadKey(namespace, wishing.workload), wishing] as const],
  );
  const findWorkload = among(new Map<string, WishingWorkload>(planned), host.findWorkload);
  const simulation = new Simulation(
    { ...host, proxies, findWorkload, namespaces: namespaces.after, claims, missing, objects: named },
    now,
  );
  for (const { namespace, claim } of found.writtenClaims) simulation.addClaims(namespace, [claim]);
  const plans = [
    ...[...namespaces.refused].map(([name, message]) => refusedNamespace(name, message)),
    ...reviewed.map((one) => (one.pods.length > 0 ? placePods(one, simulation, input) : placeWhole(one, simulation))),
    ...objects.map((one) => placeWhole(one, simulation)),
  ];
  const skipped = [...reviewed, ...objects].flatMap(({ notChecked }) => notChecked ?? []);
  return {
    fits: plans.every(({ outcome }) => outcome === "fits" || outcome === "notDelegated"),
    workloads: plans,
    guesses: simulation.members.flatMap(({ name: cluster, guesses }) =>
      guesses.map((message) => ({ cluster, message })),
    ),
    notChecked: [...new Set([...namespaces.notChecked, ...found.notChecked, ...skipped])],
  };
}

function uidOf({ metadata }: Stored<Pod>): string {
  return metadata.uid;
}

function refusedNamespace(name: string, message: string): WorkloadPlan {
  return { ...emptyPlan({ kind: "Namespace", namespace: name, name }), outcome: "refused", message };
}

function placePods(
  { plan, pods, claims, currentPods, failedCreate }: Reviewed,
  simulation: Simulation,
  { found: { services }, host: { clusters } }: Pick<PlanInput, "found" | "host">,
): WorkloadPlan {
  simulation.addClaims(plan.namespace, claims);
  const plannedPods: PlannedPod[] = [];
  const declined: Declined[] = [];
  for (const pod of pods) {
    const { others, ...place }: SimulatedPlace =
      failedCreate === undefined
        ? simulation.place(pod)
        : { reason: "FailedCreate", message: failedCreate, others: [] };
    plannedPods.push({ name: pod.metadata.name, ...place });
    declined.push(...others);
  }
  const members = simulation.members.map(({ name }) => name);
  const memberOfPod = new Map(plannedPods.map(({ name, cluster }) => [name, cluster]));
  const placed = ({ metadata }: Stored<Pod>): string | undefined => memberOfPod.get(metadata.name);
  return {
    ...plan,
    notes: [...plan.notes, ...dividedServices(pods, placed, { services, clusters })],
    outcome: plannedPods.some(isWaiting) ? "waits" : "fits",
    pods: plannedPods,
    clusters: plannedMembers(members, currentPods.map(memberOf), plannedPods, declined),
  };
}
