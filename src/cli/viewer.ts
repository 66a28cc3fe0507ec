import { isKubeError, type KubeError } from "../kube/errors.ts";
import { Failure } from "./failure.ts";

/** Reads from the host on behalf of a user. Rejects with a `Failure` that names the missing role. */
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

/** Returns the role to grant: manifests/rbac-viewer.yaml for the whole host, Kubernetes' `view` for one namespace. */
function missingRole({ resource }: KubeError): string {
  const isInNamespace = / in |\//.test(resource);
  return isInNamespace
    ? "have your account bound to the ClusterRole view, by a RoleBinding in that namespace"
    : "have your account bound to the ClusterRole legation-viewer, by a ClusterRoleBinding";
}
