import { z } from "zod";
import { apiRequest } from "../clusters/api-request.ts";
import { type AuditEvent, auditEvents, isWrite } from "../clusters/audit.ts";
import type { Cluster } from "../clusters/types.ts";

/**
 * A pod from audit logs, and two moments between which it surely existed: the API servers' RFC 3339 times, comparable
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
export async function podLives(
  cluster: Cluster,
  namespace: string,
  present: (cluster: Cluster, namespace: string) => Promise<ReadonlySet<string>> = namesOfPods,
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
  const events = await auditEvents(cluster, (event) => isPodWrite(event, namespace), [namespace]);
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

async function namesOfPods(cluster: Cluster, namespace: string): Promise<ReadonlySet<string>> {
  const { text } = await apiRequest(cluster, "GET", `/api/v1/namespaces/${namespace}/pods`);
  const { items = [] } = podNames.parse(JSON.parse(text));
  return new Set(items.map(({ metadata: { name } }) => name));
}

const podNames = z.looseObject({
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

function isPodWrite(event: AuditEvent, namespace: string): boolean {
  const { objectRef, responseStatus } = event;
  if (objectRef?.resource !== "pods" || objectRef.namespace !== namespace || !isWrite(event)) return false;
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
