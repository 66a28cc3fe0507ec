import type { Pod, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { followedObjects } from "../../scheduling/followed-objects.ts";
import { listDelegatedTypes } from "../shared/delegated-types.ts";
import type { WrittenObject } from "../shared/documents.ts";
import { Failure } from "../shared/failure.ts";
import { hiddenLine, ofViewers } from "../shared/hidden.ts";
import { asViewer, readable } from "../shared/reading.ts";
import { readHost } from "../simulation/host-state.ts";
import { workloadKind } from "../simulation/workloads.ts";
import { type DryRunAnswer, dryRunNamespace, dryRunObject, dryRunPod } from "./dry-run.ts";
import { readManifestState, workloadsOf } from "./manifest.ts";
import { planNamespaces } from "./namespaces.ts";
import type { Plan } from "./outcome.ts";
import { planOf } from "./plan.ts";
import { checkExpressions, isWholeObject, type ObjectReviewInput, reviewObject } from "./whole.ts";

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
