import { type Cluster, joinedNetworkOf } from "../../api/cluster.ts";
import { WHOLE_KEY, WHOLE_VALUE } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { type ServiceObject, selects } from "../../copies/services.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { memberOf } from "../../pods/proxy.ts";
import { followedObjects } from "../../scheduling/followed-objects.ts";
import { type WishingWorkload, workloadKey } from "../../scheduling/workload.ts";
import type { HostState } from "../../simulation/host-state.ts";
import { type SimulatedPlace, Simulation } from "../../simulation/simulation.ts";
import type { Declined } from "../../whole/type.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { hiddenLine, ofViewers } from "../shared/hidden.ts";
import { asViewer, readable } from "../shared/reading.ts";
import { among, readHost } from "../simulation/host-state.ts";
import { workloadKind } from "../simulation/workloads.ts";
import { type DryRunAnswer, dryRunNamespace, dryRunObject, dryRunPod } from "./dry-run.ts";
import { readManifestState, type WrittenWorkload, workloadsOf } from "./manifest.ts";
import { planNamespaces } from "./namespaces.ts";
import { emptyPlan, isWaiting, type Plan, type PlannedPod, plannedMembers, type WorkloadPlan } from "./outcome.ts";
import { type Reviewed, type ReviewInput, review } from "./review.ts";
import {
  checkExpressions,
  isWholeObject,
  type ObjectReviewInput,
  placeWhole,
  type ReviewedWhole,
  reviewObject,
} from "./whole.ts";

/** Throws `Failure` for a manifest without pods and whole objects. `source` names it. */
export function checkHasWork(objects: readonly WrittenObject[], source: string): void {
  if (objects.some((object) => isWholeObject(object) || workloadKind(object) !== undefined)) return;
  throw new Failure("failure", {
    object: source,
    problem:
      "has no Pod, Deployment, ReplicaSet, StatefulSet, ReplicationController, Job or CronJob to plan, and nothing with legation.dev/whole",
    remedy: "give a manifest that has one; pods of a custom resource are known when its controller has made them",
  });
}

/** Plans a manifest in the host's present state. `namespace`: of objects that name none. Rejects with `Failure` or KubeError. */
export async function readPlan(
  client: ClusterClient,
  objects: readonly WrittenObject[],
  { namespace, signal }: { readonly namespace: string; readonly signal: AbortSignal },
): Promise<Plan> {
  for (const object of objects) checkExpressions(object);
  const whole = objects.filter(isWholeObject);
  const workloads = workloadsOf(objects, namespace);
  const written = objects.filter(({ apiVersion, kind }) => apiVersion === "v1" && kind === "Namespace");
  const own = new Set([
    ...workloads.map((workload) => workload.namespace),
    ...whole.map(({ metadata }) => metadata.namespace ?? namespace),
    ...written.flatMap(({ metadata }) => metadata.name ?? []),
  ]);
  const types =
    whole.length > 0
      ? await asViewer(listDelegatedTypes(client, signal))
      : await readable(listDelegatedTypes(client, signal));
  const followed = (types ?? []).flatMap((type) => followedObjects(type) ?? []);
  const [{ host, hidden }, found] = await Promise.all([
    asViewer(readHost(client, [...own], signal), WITHOUT_WHICH),
    asViewer(readManifestState(client, objects, workloads, { current: namespace, followed, signal })),
  ]);
  const namespaces = await planNamespaces(host.namespaces, objects, (one, isNew) =>
    dryRunNamespace(client, one, isNew, signal),
  );
  const ask = (pod: Pod): Promise<DryRunAnswer<Stored<Pod>>> => dryRunPod(client, pod, signal);
  const askObject: ObjectReviewInput["ask"] = (resource, one) => dryRunObject(client, resource, one, signal);
  const input = { types: types ?? [], current: namespace, namespaces, ask: askObject };
  const reviewed = await Promise.all(whole.map((object) => reviewObject(object, input)));
  const plan = await planOf({
    workloads,
    objects: reviewed,
    host: { ...host, followed },
    namespaces,
    found,
    now: Date.now(),
    ask,
  });
  return { ...plan, hidden: hiddenLine(types === undefined ? [...hidden, TYPES] : hidden) };
}

const TYPES = ofViewers("DelegatedTypes");
const WITHOUT_WHICH = ", without which no member can be chosen";

interface PlanInput extends ReviewInput {
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

/** Says which Services lead to a part of these pods only, since the pods are divided over members that no network joins. */
function dividedServices(
  pods: readonly Stored<Pod>[],
  memberOf: (pod: Stored<Pod>) => string | undefined,
  {
    services,
    clusters,
  }: { readonly services: readonly ServiceObject[]; readonly clusters: readonly Stored<Cluster>[] },
): string[] {
  const networkOf = new Map(clusters.map((cluster) => [cluster.metadata.name, joinedNetworkOf(cluster)]));
  return services.flatMap((service) => {
    const selected = pods.filter(
      ({ metadata }) => metadata.namespace === service.metadata?.namespace && selects(service, metadata.labels ?? {}),
    );
    const members = [...new Set(selected.map(memberOf))].filter((member) => member !== undefined).sort();
    const networks = new Set(members.map((member) => networkOf.get(member) ?? `alone: ${member}`));
    if (networks.size < 2 || service.metadata?.annotations?.[WHOLE_KEY] === WHOLE_VALUE) return [];
    const name = service.metadata?.name;
    return [
      `Service ${name} leads to the pods of the same member or network only: ${members.join(", ")} are in no network ` +
        "together (legation join --network)",
    ];
  });
}
