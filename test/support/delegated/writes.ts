import { type AuditEvent, auditEvents, isWrite } from "../clusters/audit.ts";
import type { Cluster } from "../clusters/types.ts";

// Legation's service accounts on the host and in members.
const LEGATION = "system:serviceaccount:legation-system:";

/** Writes, such as `create pods/binding`; refused ones carry the status code. */
function writeOf({ verb, objectRef, responseStatus }: AuditEvent): string {
  const { resource = "", subresource } = objectRef ?? {};
  const { code = 0 } = responseStatus ?? {};
  const what = `${verb} ${subresource === undefined ? resource : `${resource}/${subresource}`}`;
  return code < 400 ? what : `${what}: ${code}`;
}

/** Returns Legation's writes in one cluster that concern a namespace. */
export interface NamespaceWrites {
  /** Writes by the pod's name, in their order, subresources included. */
  readonly pods: ReadonlyMap<string, readonly string[]>;
  /** Writes of events, which a kubelet would write on a plain cluster. */
  readonly events: readonly string[];
  /** Writes of the namespace and everything else in it. */
  readonly others: readonly string[];
}

/** Legation's writes from the cluster's audit log, also those that were refused. */
export async function legationWrites(cluster: Cluster, namespace: string): Promise<NamespaceWrites> {
  const concerns = ({ objectRef }: AuditEvent): boolean =>
    objectRef?.namespace === namespace || (objectRef?.resource === "namespaces" && objectRef.name === namespace);
  const events = await auditEvents(
    cluster,
    (event) => event.user.username.startsWith(LEGATION) && isWrite(event) && concerns(event),
    [namespace],
  );
  const pods = new Map<string, string[]>();
  const told: string[] = [];
  const others: string[] = [];
  for (const event of events) {
    const { resource, name = "" } = event.objectRef ?? {};
    if (resource === "pods") pods.set(name, [...(pods.get(name) ?? []), writeOf(event)]);
    else if (resource === "events") told.push(writeOf(event));
    else others.push(writeOf(event));
  }
  return { pods, events: told, others };
}
