import { isKubeError, type KubeError } from "../kube/errors.ts";
import { Failure } from "./failure.ts";

/** What is read of the host for a person. Rejects with a `Failure` that names the role which an account lacks. */
export async function asViewer<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    throw new Failure("failure", {
      object: error.cluster,
      problem: `you may not ${error.verb} ${error.resource}: ${error.detail}`,
      remedy: missingRole(error),
      cause: error,
    });
  }
}

/** Of the whole host what manifests/rbac-viewer.yaml has; of one namespace what Kubernetes' own role for readers has. */
function missingRole({ resource }: KubeError): string {
  const isInNamespace = / in |\//.test(resource);
  return isInNamespace
    ? "have your account bound to the ClusterRole view, by a RoleBinding in that namespace"
    : "have your account bound to the ClusterRole legation-viewer, by a ClusterRoleBinding";
}
