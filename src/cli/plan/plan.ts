import { defined } from "../../api/defined.ts";
import type { Pod, Stored } from "../../api/kubernetes.ts";
import { isWishingKind } from "../../api/workload-wishes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { namespaces as namespaceResource, pods } from "../../kube/resources.ts";
import { followedObjects } from "../../scheduling/followed-objects.ts";
import { workloadKey } from "../../scheduling/workload.ts";
import { Simulation } from "../../simulation/simulation.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { hiddenLine, ofViewers } from "../shared/hidden.ts";
import { asViewer, readable } from "../shared/reading.ts";
import { among, readHost } from "../simulation/host-state.ts";
import { workloadKind } from "../simulation/workloads.ts";
import { dryRun } from "./dry-run.ts";
import type { PlanInput } from "./input.ts";
import { ofCore, readManifestState, workloadsOf } from "./manifest.ts";
import { planNamespaces } from "./namespaces.ts";
import { emptyPlan, type Plan, type WorkloadPlan } from "./outcome.ts";
import { review } from "./review.ts";
import { checkExpressions, isWholeObject, reviewObject } from "./whole.ts";

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
  { namespace: current, signal }: { readonly namespace: string; readonly signal: AbortSignal },
): Promise<Plan> {
  for (const object of objects) checkExpressions(object);
  const whole = objects.filter(isWholeObject);
  const workloads = workloadsOf(objects, current);
  const own = new Set([
    ...workloads.map(({ namespace }) => namespace),
    ...whole.map(({ metadata: { namespace = current } }) => namespace),
    ...ofCore("Namespace", objects).flatMap(({ metadata }) => metadata.name ?? []),
  ]);
  const listing = listDelegatedTypes(client, signal);
  const types = whole.length > 0 ? await asViewer(listing) : await readable(listing);
  const followed = (types ?? []).flatMap((type) => followedObjects(type) ?? []);
  const [{ host, hidden }, found] = await Promise.all([
    asViewer(readHost(client, [...own], signal), ", without which no member can be chosen"),
    asViewer(readManifestState(workloads, { host: client, objects, current, followed, signal })),
  ]);
  const namespaces = await planNamespaces(host.namespaces, objects, ({ metadata: { name, labels, annotations } }) => {
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: defined({ name, labels, annotations }) };
    return dryRun(client, namespaceResource, namespace, signal);
  });
  const plan = await planOf({
    workloads,
    objects: whole,
    current,
    host: { ...host, followed },
    types: types ?? [],
    namespaces,
    found,
    now: Date.now(),
    ask: (pod) => dryRun(client, pods, pod, signal),
    askObject: (resource, object) => dryRun(client, resource, object, signal),
  });
  return { ...plan, hidden: hiddenLine(types === undefined ? [...hidden, ofViewers("DelegatedTypes")] : hidden) };
}

/** Places the pods that a manifest's workloads want, in its order, as if these workloads had none yet. */
export async function planOf(input: PlanInput): Promise<Plan> {
  const { workloads, objects, host, namespaces, found, now } = input;
  const reviewed = await Promise.all([
    ...workloads.map((workload) => review(workload, input)),
    ...objects.map((object) => reviewObject(object, input)),
  ]);
  const placed = workloads.filter((_, index) => reviewed[index]?.place !== undefined);
  const replaced = new Set(placed.flatMap((workload) => found.existing.get(workload)?.pods.map(uidOf) ?? []));
  const wishing = placed.flatMap(({ kind, namespace, name, object: { metadata } }) =>
    isWishingKind(kind)
      ? [[workloadKey(namespace, { kind, name }), { annotations: metadata.annotations ?? {} }] as const]
      : [],
  );
  const simulation = new Simulation(
    {
      ...host,
      proxies: host.proxies.filter((proxy) => !replaced.has(uidOf(proxy))),
      findWorkload: among(new Map(wishing), host.findWorkload),
      namespaces: namespaces.after,
      claims: found.claims,
      missing: found.missing,
      objects: found.objects,
    },
    now,
  );
  for (const { namespace, claim } of found.writtenClaims) simulation.addClaims(namespace, [claim]);
  const plans = [
    ...[...namespaces.refused].map(([name, message]): WorkloadPlan => {
      return { ...emptyPlan({ kind: "Namespace", namespace: "", name }), outcome: "refused", message };
    }),
    ...reviewed.map(({ plan, place }) => ({ ...plan, ...place?.(simulation) })),
  ];
  const skipped = reviewed.flatMap(({ notChecked }) => notChecked ?? []);
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
