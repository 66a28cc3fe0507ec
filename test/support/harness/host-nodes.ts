import { type AuditEvent, auditEvents, isWrite } from "../clusters/audit.ts";
import type { Cluster } from "../clusters/types.ts";

const CONTROLLER = "system:serviceaccount:legation-system:legation-controller";
// Writers of pods that run on the host: its scheduler and its nodes.
const NODE_WRITERS = new Set(["kwok", "system:kube-scheduler"]);

/**
 * Returns signs in the audit log that a pod went to a node of the host: a Binding by another client, or a write by
 * the host's scheduler or nodes.
 */
export async function hostNodeWrites(host: Cluster, namespaces: ReadonlySet<string>): Promise<string[]> {
  const isSign = (event: AuditEvent): boolean => {
    const { resource, subresource, namespace = "" } = event.objectRef ?? {};
    if (resource !== "pods" || !namespaces.has(namespace) || !isWrite(event)) return false;
    const { username } = event.user;
    return NODE_WRITERS.has(username) || (subresource === "binding" && username !== CONTROLLER);
  };
  const signs = await auditEvents(host, isSign, [...namespaces]);
  return signs.map(({ verb, requestURI, user }) => `${user.username}: ${verb} ${requestURI}`);
}
