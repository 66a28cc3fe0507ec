import type { Namespace, Pod, Stored } from "../../api/kubernetes.ts";
import { failedAdmission, isOfQuota } from "../../controllers/refusal.ts";
import { isUntryable } from "../../controllers/try-delegate.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, isRefusal, type KubeError, mayBeStarting } from "../../kube/errors.ts";
import { withoutObjectName } from "../../kube/messages.ts";
import { namespaces, pods } from "../../kube/resources.ts";

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
    return { is: "refused", message: wordsOf(error), ofQuota: isOfQuota(error.detail) };
  }
}

/** Returns the message without the object's name, which for a pod of a workload is made up. */
function wordsOf({ detail }: KubeError): string {
  return withoutObjectName(detail);
}
