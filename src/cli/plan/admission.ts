import fastJsonPatch from "fast-json-patch";
import type { AdmissionRequest } from "../../../webhook/admission-review.ts";
import { mutatePod } from "../../../webhook/mutate-pod.ts";
import { mutateWorkload } from "../../../webhook/mutate-workload.ts";
import type { Verdict } from "../../../webhook/responses.ts";
import type { DelegationMode } from "../../api/delegation-mode.ts";
import type { Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { failedAdmission, isOfQuota } from "../../controllers/api-refusal.ts";
import { isUntryable } from "../../controllers/try-delegate.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, isRefusal, mayBeStarting } from "../../kube/errors.ts";
import { withoutObjectName } from "../../kube/messages.ts";
import { namespaces, pods } from "../../kube/resources.ts";
import { isOverflow } from "../../pods/overflow.ts";
import { isProxy } from "../../pods/proxy.ts";
import type { WrittenObject } from "../shared/documents.ts";

/** An object as Legation's webhook leaves it, or its refusal. */
export type Admitted<T> =
  | { readonly object: T; readonly warnings: readonly string[]; readonly denied?: never }
  | { readonly denied: string; readonly warnings?: never };

/** Runs the webhook's code on a workload. */
export function admitWorkload(object: WrittenObject, mode: DelegationMode): Admitted<WrittenObject> {
  const [group = ""] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : [];
  return admitted(object, mutateWorkload({ ...request(group, object.kind), object }, mode));
}

/** Runs the webhook's code on a pod: it becomes a proxy where it is delegated, and is marked where the host is asked first. */
export function admitPod(pod: Stored<Pod>, mode: DelegationMode): Admitted<Stored<Pod>> {
  const { finalizers: _, ...metadata } = pod.metadata;
  return admitted(pod, mutatePod({ ...request("", "Pod"), object: { ...pod, metadata } }, mode));
}

/** Reports whether admission has marked the pod for Legation. */
export function isDelegated(pod: Stored<Pod>): boolean {
  return isProxy(pod) || isOverflow(pod);
}

function request(group: string, kind: string): Omit<AdmissionRequest, "object"> {
  return { uid: "plan", operation: "CREATE", kind: { group, kind }, oldObject: undefined };
}

function admitted<T>(object: T, verdict: Verdict): Admitted<T> {
  if (verdict.kind === "denied") return { denied: verdict.message };
  const { warnings } = verdict;
  if (verdict.kind === "allowed") return { object, warnings };
  return { object: fastJsonPatch.applyPatch(structuredClone(object), verdict.patch).newDocument, warnings };
}

/** The answer of the host's API server to a dry-run. */
export type Answer<T> =
  /** The object as admission leaves it: with defaults, and as webhooks have changed it. */
  | { readonly is: "admitted"; readonly object: T }
  | { readonly is: "refused"; readonly message: string; readonly ofQuota: boolean }
  /** The API server did not run its admission for the asker. */
  | { readonly is: "notChecked"; readonly why: string };

/** Asks whether the host would create the pod, with the asker's own rights. Rejects with KubeError if the API server does not answer. */
export function dryRunPod(host: ClusterClient, pod: Pod, signal: AbortSignal): Promise<Answer<Stored<Pod>>> {
  return answered(host.create(pods, pod, { dryRun: true, dropManagedFields: true, signal }));
}

/** Asks whether the host would take the namespace as `kubectl apply` sends it. Rejects as `dryRunPod` does. */
export function dryRunNamespace(
  host: ClusterClient,
  { metadata: { name, labels = {}, annotations = {} } }: Stored<Namespace>,
  isNew: boolean,
  signal: AbortSignal,
): Promise<Answer<Stored<Namespace>>> {
  const options = { dryRun: true, signal };
  if (isNew) return answered(host.create(namespaces, { metadata: { name, labels, annotations } }, options));
  return answered(
    host.patch(namespaces, { name }, { type: "merge", body: { metadata: { labels, annotations } } }, options),
  );
}

async function answered<T>(sent: Promise<T>): Promise<Answer<T>> {
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
