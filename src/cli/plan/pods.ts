import { joinedNetworkOf } from "../../api/cluster.ts";
import type { DelegationMode } from "../../api/delegation-mode.ts";
import { WHOLE_KEY, WHOLE_VALUE } from "../../api/keys.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { allDependenciesOf, dependencyKey, namingField } from "../../copies/named-by-pods.ts";
import { selects } from "../../copies/services.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { memberOf } from "../../pods/proxy.ts";
import { admitPod, isDelegated } from "../../simulation/admission.ts";
import type { SimulatedPlace } from "../../simulation/simulation.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { claimsOf, podOf } from "../simulation/controller-pods.ts";
import type { WorkloadPods } from "../simulation/workloads.ts";
import type { PlanInput, Reviewed } from "./input.ts";
import type { WrittenWorkload } from "./manifest.ts";
import { isWaiting, plannedMembers, type WorkloadPlan } from "./outcome.ts";

interface ReviewedWorkload {
  readonly mode: DelegationMode;
  readonly plan: WorkloadPlan;
  readonly currentPods: readonly Stored<Pod>[];
}

/** Reviews the first pod of a workload; the others differ by name only. */
export async function reviewPods(
  workload: WrittenWorkload,
  pods: WorkloadPods,
  { mode, plan, currentPods }: ReviewedWorkload,
  input: PlanInput,
): Promise<Reviewed> {
  const { firstOrdinal, replicas } = pods;
  const first = podOf(workload, pods, firstOrdinal);
  const own = admitPod(first, mode);
  const warnings = [...new Set([...plan.warnings, ...(own.warnings ?? [])])];
  const planWith = (more: Partial<WorkloadPlan>): WorkloadPlan => ({ ...plan, warnings, ...more });
  if (own.denied !== undefined) return { plan: planWith({ outcome: "refused", message: own.denied }) };
  const { admitted = own.object, refused, notChecked } = await answerTo(first, workload, currentPods, input);
  if (workload.kind === "Pod" && refused !== undefined)
    return { plan: planWith({ outcome: "refused", message: refused }) };
  const { metadata, spec = { containers: [] } } = admitted;
  const ordinals = Array.from({ length: replicas }, (_, index) => firstOrdinal + index);
  const all = ordinals.map((ordinal) => podOf(workload, { ...pods, metadata, spec }, ordinal));
  if (!all.some(isDelegated)) {
    const message = "its pods do not ask for delegation: they run on the host";
    return { plan: planWith({ outcome: "notDelegated", message }), notChecked };
  }
  const notes = all.some(isOverflow) ? [...plan.notes, HOST_FIRST] : plan.notes;
  return {
    plan: planWith({}),
    notChecked,
    place: (simulation) => {
      const claims = ordinals.flatMap((ordinal) => claimsOf(workload, pods, ordinal));
      simulation.addClaims(workload.namespace, claims);
      const placeOf = (pod: Stored<Pod>): SimulatedPlace =>
        refused === undefined ? simulation.place(pod) : { reason: "FailedCreate", message: refused, others: [] };
      const places = all.map((pod) => ({ pod, ...placeOf(pod) }));
      const planned = places.map(({ pod, others: _, ...place }) => ({ name: pod.metadata.name, ...place }));
      const members = simulation.members.map(({ name }) => name);
      const declined = places.flatMap(({ others }) => others);
      return {
        notes: [...notes, ...dividedServices(places, input)],
        outcome: planned.some(isWaiting) ? "waits" : "fits",
        pods: planned,
        clusters: plannedMembers(members, currentPods.map(memberOf), planned, declined),
      };
    },
  };
}

const HOST_FIRST = "the host's own scheduler is asked first: this is for pods that it has no room for";
const CHECKS = "defaults, LimitRanges, quotas, Pod Security, policies and webhooks";

interface PodAnswer {
  readonly admitted?: Pick<Stored<Pod>, "metadata" | "spec">;
  /** Why the API server creates none of the pods. */
  readonly refused?: string;
  readonly notChecked?: string;
}

/** Asks the API server about a workload's pod. A quota refuses nothing if the workload has pods that fill it: they may be replaced. */
async function answerTo(
  pod: Stored<Pod>,
  { kind, namespace, name, object }: WrittenWorkload,
  currentPods: readonly Stored<Pod>[],
  { ask, namespaces, found }: PlanInput,
): Promise<PodAnswer> {
  if (namespaces.changed.has(namespace)) {
    return { notChecked: `${CHECKS} in namespace ${namespace}: the manifest creates or changes the namespace` };
  }
  // Accounts and classes that the manifest creates: a pod that names one would be refused.
  const omitted: Readonly<Record<string, string>> = Object.fromEntries(
    allDependenciesOf(pod).flatMap((named) => {
      const field = namingField(named.kind);
      return field !== undefined && found.created.has(dependencyKey(named)) ? [[field, named.name]] : [];
    }),
  );
  const answer = await ask(asSent(pod, kind === "Pod" ? object.metadata : {}, omitted));
  const subject = `${kind} ${namespace}/${name}`;
  if (answer.is === "notChecked") return { notChecked: `${CHECKS} for ${subject}: ${answer.why}` };
  if (answer.is === "refused") {
    if (!answer.ofQuota || currentPods.length === 0) return { refused: answer.message };
    return { notChecked: `${CHECKS} for ${subject}: ${answer.message}, with the pods that it has now` };
  }
  const { metadata, spec } = answer.object;
  const names = Object.values(omitted).join(" and ");
  const leftOut = `pods of ${subject} with ${names}: created by the manifest, so left out of the dry-run`;
  return {
    admitted: { metadata, spec: { containers: [], ...spec, ...omitted } },
    ...(names === "" ? {} : { notChecked: leftOut }),
  };
}

/** Returns the pod as its controller or author sends it, without the `omitted` fields. */
function asSent(
  { metadata, spec, ...pod }: Stored<Pod>,
  { name, generateName = metadata.name.replace(/\*?\d*$/, "") }: WrittenObject["metadata"],
  omitted: Readonly<Record<string, string>>,
): Pod {
  const { name: _, uid: __, resourceVersion: ___, ...sent } = metadata;
  const asked = Object.fromEntries(Object.entries(spec ?? {}).filter(([field]) => !(field in omitted)));
  const named = name === undefined ? { generateName } : { name };
  return { ...pod, metadata: { ...sent, ...named }, spec: { containers: [], ...asked } };
}

/** Says which Services lead to a part of these pods only, since the pods are divided over members that no network joins. */
function dividedServices(
  places: readonly { readonly pod: Stored<Pod>; readonly cluster?: string }[],
  { found, host }: PlanInput,
): string[] {
  const networkOf = new Map(host.clusters.map((cluster) => [cluster.metadata.name, joinedNetworkOf(cluster)]));
  return found.services.flatMap((service) => {
    const { name, namespace, annotations = {} } = service.metadata ?? {};
    const selected = places.filter(
      ({ pod: { metadata } }) => metadata.namespace === namespace && selects(service, metadata.labels ?? {}),
    );
    const members = [...new Set(selected.flatMap(({ cluster }) => cluster ?? []))].sort();
    const networks = new Set(members.map((member) => networkOf.get(member) ?? `alone: ${member}`));
    if (networks.size < 2 || annotations[WHOLE_KEY] === WHOLE_VALUE) return [];
    return [
      `Service ${name} leads to the pods of the same member or network only: ${members.join(", ")} are in no network ` +
        "together (legation join --network)",
    ];
  });
}
