import { AT_ONCE, type Subject, type Way } from "./client.ts";

// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles
const READS = ["get", "list", "watch"];
const NOT_IN_VIEW = ["secrets"];

/** Returns the way of an account with the ClusterRole `view` in one namespace, and the right to read more resources of all. */
export function viewerOf(namespace: string, ...more: readonly string[]): Way {
  const permits = ({ verb, resource, namespace: asked, objectName }: Subject): boolean => {
    // Discovery and `/version` are for everybody.
    if (resource === "raw") return true;
    if (!READS.includes(verb) || NOT_IN_VIEW.includes(resource)) return false;
    // RBAC counts a namespace as an object within itself.
    const isWithin = asked === namespace || (resource === "namespaces" && objectName === namespace);
    return isWithin || more.includes(resource);
  };
  return { ...AT_ONCE, permits };
}
