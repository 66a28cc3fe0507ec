import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { failedAdmission, isOfQuota } from "../../controllers/api-refusal.ts";
import { isUntryable } from "../../controllers/try-delegate.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, isRefusal, mayBeStarting } from "../../kube/errors.ts";
import { withoutObjectName } from "../../kube/messages.ts";
import type { Resource } from "../../kube/resources.ts";

export type DryRunAnswer<T> =
  /** The object as admission leaves it: with defaults, and as webhooks have changed it. */
  | { readonly is: "admitted"; readonly object: T }
  | { readonly is: "refused"; readonly message: string; readonly ofQuota: boolean }
  /** No answer: the API server did not run its admission for the asker. */
  | { readonly is: "notChecked"; readonly why: string };

/**
 * Asks whether the host would take an object as `kubectl apply` sends it, or create a pod, with the asker's own rights. Rejects with
 * KubeError if the API server does not answer.
 */
export async function dryRun<T extends KubeObject>(
  host: ClusterClient,
  resource: Resource<T>,
  object: T,
  signal: AbortSignal,
): Promise<DryRunAnswer<Stored<T>>> {
  const { name, namespace = "" } = object.metadata ?? {};
  const options = { dryRun: true, dropManagedFields: true, signal };
  try {
    if (name === undefined || resource.kind === "Pod") {
      return { is: "admitted", object: await host.create(resource, object, options) };
    }
    // An object that is there may have other managers' fields, which kubectl would ask about.
    const patch = { type: "apply", body: object, force: true } as const;
    const applied = { ...options, fieldManager: "legation-plan" };
    return { is: "admitted", object: await host.patch(resource, { namespace, name }, patch, applied) };
  } catch (error) {
    if (isKubeError(error, "Forbidden") && mayBeStarting(error)) {
      return { is: "notChecked", why: `you may not ${error.verb} ${error.resource}` };
    }
    if (isUntryable(error) && isKubeError(error)) {
      return { is: "notChecked", why: `${error.detail}: the sideEffects of its configuration are not None` };
    }
    const isOfObject = isKubeError(error, "AlreadyExists", "NotFound", "Conflict");
    if (!isRefusal(error) && !failedAdmission(error) && !isOfObject) throw error;
    // The name of a workload's pod is made up.
    const message = withoutObjectName(error.detail);
    return { is: "refused", message, ofQuota: isOfQuota(error.detail) };
  }
}
