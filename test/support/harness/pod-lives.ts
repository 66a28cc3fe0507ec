import { z } from "zod";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { collectionPath } from "../../../src/kube/internal/resource-paths.ts";
import { pods, type Resource } from "../../../src/kube/resources.ts";
import { apiRequest } from "../clusters/api-request.ts";
import { type AuditEvent, auditEvents, isWrite } from "../clusters/audit.ts";
import type { Cluster } from "../clusters/types.ts";

/**
 * A pod, or an object of another resource, from audit logs, and two moments between which it surely existed: the API servers' RFC 3339 times, comparable
 * as text between clusters of one machine.
 */
export interface PodLife {
  readonly cluster: string;
  readonly name: string;
  /** Time of the answer to its creation, or soon after if the client was gone. */
  readonly from: string;
  /** Time of the request that removed it. Undefined while it exists, or if not logged. */
  readonly until?: string;
  /** The pod exists. */
  readonly alive?: true;
}

/** Returns all pods that a namespace ever had, by creation. `present`: names of existing ones. */
export function podLives(
  cluster: Cluster,
  namespace: string,
  present?: (cluster: Cluster, namespace: string) => Promise<ReadonlySet<string>>,
): Promise<PodLife[]> {
  return objectLives(cluster, namespace, { resource: pods, ...(present === undefined ? {} : { present }) });
}

/** Returns all objects of a resource that a namespace ever had, by creation. `present`: names of existing ones. */
export async function objectLives(
  cluster: Cluster,
  namespace: string,
  {
    resource,
    present = (where, from) => namesOf(where, collectionPath(resource, from)),
  }: {
    readonly resource: Resource<KubeObject>;
    readonly present?: (cluster: Cluster, namespace: string) => Promise<ReadonlySet<string>>;
  },
): Promise<PodLife[]> {
  const names = await present(cluster, namespace);
  const lives: PodLife[] = [];
  const current = new Map<string, { created: AuditEvent; removed?: AuditEvent }>();
  // Pods that may have been made though the caller got no answer. Any other write on such a pod proves it.
  const unanswered = new Set<string>();
  const end = (name: string): void => {
    const life = current.get(name);
    if (life === undefined) return;
    const { created, removed } = life;
    lives.push({
      cluster: cluster.name,
      name,
      from: created.stageTimestamp,
      ...(removed === undefined ? {} : { until: removed.requestReceivedTimestamp }),
    });
    current.delete(name);
  };
  const begin = (name: string, created: AuditEvent): void => {
    end(name);
    unanswered.delete(name);
    current.set(name, { created });
  };
  const events = await auditEvents(cluster, (event) => isWriteOn(resource.plural, event, namespace), [namespace]);
  for (const event of events.sort((a, b) => (momentOf(a) < momentOf(b) ? -1 : 1))) {
    const name = event.objectRef?.name ?? "";
    if (isCreation(event)) {
      if (isDone(event)) begin(name, event);
      else unanswered.add(name);
      continue;
    }
    const known = current.get(name);
    if (unanswered.has(name) && (known === undefined || known.removed !== undefined)) begin(name, event);
    const life = current.get(name);
    if (life !== undefined && isDeletion(event)) life.removed = event;
  }
  for (const [name, { created, removed }] of current) {
    if (removed === undefined && names.has(name)) {
      lives.push({ cluster: cluster.name, name, from: created.stageTimestamp, alive: true });
    } else end(name);
  }
  return lives.sort((a, b) => (a.from < b.from ? -1 : 1));
}

async function namesOf(cluster: Cluster, path: string): Promise<ReadonlySet<string>> {
  const { text } = await apiRequest(cluster, "GET", path);
  const { items = [] } = objectNames.parse(JSON.parse(text));
  return new Set(items.map(({ metadata: { name } }) => name));
}

const objectNames = z.looseObject({
  items: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) })).optional(),
});

/** Returns pairs of pods with one name that existed at one moment, in the same cluster or not. */
export function overlaps(lives: readonly PodLife[]): [PodLife, PodLife][] {
  const sorted = [...lives].sort((a, b) => (a.from < b.from ? -1 : 1));
  // A pod that vanished without a deletion by name ended at an unknown time, which proves nothing.
  const surelyTo = ({ from, until, alive }: PodLife): string => until ?? (alive === true ? "9" : from);
  return sorted.flatMap((life, index) =>
    sorted
      .slice(index + 1)
      .filter((other) => other.name === life.name && other.from < surelyTo(life))
      .map((other): [PodLife, PodLife] => [life, other]),
  );
}

// A name is free before its deletion is answered: the next creation may be answered earlier than that.
function momentOf(event: AuditEvent): string {
  return isCreation(event) && isDone(event) ? event.stageTimestamp : event.requestReceivedTimestamp;
}

function isWriteOn(plural: string, event: AuditEvent, namespace: string): boolean {
  const { objectRef, responseStatus } = event;
  if (objectRef?.resource !== plural || objectRef.namespace !== namespace || !isWrite(event)) return false;
  return isDone(event) || (isCreation(event) && (responseStatus?.code ?? 500) >= 500);
}

function isDone({ responseStatus }: AuditEvent): boolean {
  return (responseStatus?.code ?? 500) < 300;
}

function isCreation({ verb, objectRef }: AuditEvent): boolean {
  return verb === "create" && objectRef?.subresource === undefined;
}

function isDeletion({ verb, objectRef }: AuditEvent): boolean {
  return verb === "delete" && objectRef?.subresource === undefined;
}
