import type { AnyObject } from "../../api/delegated-type.ts";
import type { Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { failedAdmission, isOfQuota } from "../../controllers/api-refusal.ts";
import { isUntryable } from "../../controllers/try-delegate.ts";
import { allDependenciesOf, type DependencyKey, dependencyKey, namingField } from "../../copies/named-by-pods.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, isRefusal, mayBeStarting } from "../../kube/errors.ts";
import { withoutObjectName } from "../../kube/messages.ts";
import { namespaces, pods, type Resource } from "../../kube/resources.ts";
import type { WrittenObject } from "../shared/documents.ts";
import type { WorkloadPods } from "../simulation/workloads.ts";
import type { WrittenWorkload } from "./manifest.ts";

export type DryRunAnswer<T> =
  /** The object as admission leaves it: with defaults, and as webhooks have changed it. */
  | { readonly is: "admitted"; readonly object: T }
  | { readonly is: "refused"; readonly message: string; readonly ofQuota: boolean }
  /** No answer: the API server did not run its admission for the asker. */
  | { readonly is: "notChecked"; readonly why: string };

/** Asks whether the host would create the pod, with the asker's own rights. Rejects with KubeError if the API server does not answer. */
export function dryRunPod(host: ClusterClient, pod: Pod, signal: AbortSignal): Promise<DryRunAnswer<Stored<Pod>>> {
  return answered(host.create(pods, pod, { dryRun: true, dropManagedFields: true, signal }));
}

/** Asks whether the host would take the namespace as `kubectl apply` sends it. Rejects as `dryRunPod` does. */
export function dryRunNamespace(
  host: ClusterClient,
  { metadata: { name, labels = {}, annotations = {} } }: Stored<Namespace>,
  isNew: boolean,
  signal: AbortSignal,
): Promise<DryRunAnswer<Stored<Namespace>>> {
  const options = { dryRun: true, signal };
  if (isNew) return answered(host.create(namespaces, { metadata: { name, labels, annotations } }, options));
  return answered(
    host.patch(namespaces, { name }, { type: "merge", body: { metadata: { labels, annotations } } }, options),
  );
}

/** Asks whether the host would take the object as `kubectl apply` sends it. Rejects as `dryRunPod` does. */
export function dryRunObject(
  host: ClusterClient,
  resource: Resource<AnyObject>,
  object: AnyObject,
  signal: AbortSignal,
): Promise<DryRunAnswer<Stored<AnyObject>>> {
  const { name, namespace = "" } = object.metadata ?? {};
  const options = { dryRun: true, dropManagedFields: true, signal };
  if (name === undefined) return answered(host.create(resource, object, options));
  // An object that is there may have other managers' fields, which kubectl would ask about.
  const patch = { type: "apply", body: object, force: true } as const;
  return answered(host.patch(resource, { namespace, name }, patch, { ...options, fieldManager: "legation-plan" }));
}

async function answered<T>(sent: Promise<T>): Promise<DryRunAnswer<T>> {
  try {
    return { is: "admitted", object: await sent };
  } catch (error) {
    if (isKubeError(error, "Forbidden") && mayBeStarting(error)) {
      return { is: "notChecked", why: `you may not ${error.verb} ${error.resource}` };
    }
    if (isUntryable(error) && isKubeError(error)) {
      return { is: "notChecked", why: `${error.detail}: the sideEffects of its configuration are not None` };
    }
    if (!isRefusal(error) && !failedAdmission(error) && !isKubeError(error, "AlreadyExists", "NotFound")) throw error;
    // The name of a workload's pod is made up.
    const message = withoutObjectName(error.detail);
    return { is: "refused", message, ofQuota: isOfQuota(error.detail) };
  }
}

interface PodAnswer {
  readonly admitted?: Pick<WorkloadPods, "metadata" | "spec">;
  readonly refused?: string;
  readonly notChecked?: string;
}

interface DryRunContext {
  readonly ask: (pod: Pod) => Promise<DryRunAnswer<Stored<Pod>>>;
  readonly changed: ReadonlySet<string>;
  readonly created: ReadonlySet<DependencyKey>;
}

/** Asks the API server about a workload's pod. A quota refuses nothing if the workload `hasPods` that fill it: they may be replaced. */
export async function dryRun(
  { kind, namespace, name, object }: WrittenWorkload,
  pod: Stored<Pod>,
  hasPods: boolean,
  { ask, changed, created }: DryRunContext,
): Promise<PodAnswer> {
  const checks = "defaults, LimitRanges, quotas, Pod Security, policies and webhooks";
  if (changed.has(namespace)) {
    return { notChecked: `${checks} in namespace ${namespace}: the manifest creates or changes the namespace` };
  }
  const omitted = namesOfCreated(pod, created);
  const answer = await ask(dryRunRequest(pod, kind === "Pod" ? object.metadata : {}, omitted));
  const subject = `${kind} ${namespace}/${name}`;
  if (answer.is === "notChecked") return { notChecked: `${checks} for ${subject}: ${answer.why}` };
  if (answer.is === "refused") {
    if (!answer.ofQuota || !hasPods) return { refused: answer.message };
    return { notChecked: `${checks} for ${subject}: ${answer.message}, with the pods that it has now` };
  }
  const { metadata, spec } = answer.object;
  const names = Object.values(omitted).join(" and ");
  const leftOut = `pods of ${subject} with ${names}: created by the manifest, so left out of the dry-run`;
  return {
    admitted: { metadata, spec: { containers: [], ...spec, ...omitted } },
    ...(names === "" ? {} : { notChecked: leftOut }),
  };
}

/** Returns the fields of the pod that name an account or class which the manifest creates: without one, it would be refused. */
function namesOfCreated(pod: Stored<Pod>, created: ReadonlySet<DependencyKey>): Readonly<Record<string, string>> {
  const named = allDependenciesOf(pod).filter((dependency) => created.has(dependencyKey(dependency)));
  return Object.fromEntries(
    named.flatMap(({ kind, name }) => {
      const field = namingField(kind);
      return field === undefined ? [] : [[field, name]];
    }),
  );
}

/** Returns the pod as its controller or author sends it, without the `omitted` fields. */
function dryRunRequest(
  { metadata, spec, ...pod }: Stored<Pod>,
  { name, generateName = metadata.name.replace(/\*?\d*$/, "") }: WrittenObject["metadata"],
  omitted: Readonly<Record<string, string>>,
): Pod {
  const { name: _, uid: __, resourceVersion: ___, ...sent } = metadata;
  const asked = Object.fromEntries(Object.entries(spec ?? {}).filter(([field]) => !(field in omitted)));
  const named = name === undefined ? { generateName } : { name };
  return { ...pod, metadata: { ...sent, ...named }, spec: { containers: [], ...asked } };
}
