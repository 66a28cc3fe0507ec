import { KubeError } from "../kube/errors.ts";

/** Why nothing is deleted in a member for want of its object on the host: the host may have been restored from a backup. */
export function notConfirmed(cluster: string, resource: string): KubeError {
  const fields = { code: "NotSent", cluster, verb: "delete", resource } as const;
  return new KubeError("the host does not have the Lease as this leader renewed it", fields);
}
