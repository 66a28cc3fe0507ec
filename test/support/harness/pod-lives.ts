import { type AuditEvent, auditEvents, isWrite } from "../clusters/audit.ts";
import type { Cluster } from "../clusters/types.ts";

/**
 * One pod of one cluster, from audit logs: it surely existed between these two moments. They are the API server's own
 * clock, RFC 3339 with microseconds, so that they compare as text, also between clusters of one machine.
 */
export interface PodLife {
  readonly cluster: string;
  readonly name: string;
  /** When its creation had been answered. */
  readonly from: string;
  /** When the deletion that removed it was received; absent while it is there. */
  readonly until?: string;
}

/** All pods that a namespace of the cluster ever had, in the order of their creation. */
export async function podLives(cluster: Cluster, namespace: string): Promise<PodLife[]> {
  const lives: PodLife[] = [];
  const current = new Map<string, { created: AuditEvent; removed?: AuditEvent }>();
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
  const events = await auditEvents(cluster, (event) => isPodWrite(event, namespace));
  for (const event of events.sort((a, b) => (momentOf(a) < momentOf(b) ? -1 : 1))) {
    const name = event.objectRef?.name ?? "";
    if (event.verb === "create") {
      end(name);
      current.set(name, { created: event });
    } else {
      const life = current.get(name);
      if (life !== undefined) life.removed = event;
    }
  }
  for (const name of [...current.keys()]) end(name);
  return lives.sort((a, b) => (a.from < b.from ? -1 : 1));
}

/** Pairs of pods with one name that existed at one moment, in whatever clusters. */
export function overlaps(lives: readonly PodLife[]): [PodLife, PodLife][] {
  const found: [PodLife, PodLife][] = [];
  for (const [index, life] of lives.entries()) {
    for (const other of lives.slice(index + 1)) {
      if (other.name !== life.name) continue;
      // A pod that was never deleted by name went with its namespace, at an unknown time: it proves nothing.
      if (life.until !== undefined && other.from < life.until && (other.until ?? "9") > life.from) {
        found.push([life, other]);
      }
    }
  }
  return found;
}

// A name is free before its deletion is answered: the next creation may be answered earlier than that.
function momentOf({ verb, requestReceivedTimestamp, stageTimestamp }: AuditEvent): string {
  return verb === "create" ? stageTimestamp : requestReceivedTimestamp;
}

function isPodWrite(event: AuditEvent, namespace: string): boolean {
  const { verb, objectRef, responseStatus } = event;
  if (!isWrite(event)) return false;
  if (objectRef?.resource !== "pods" || objectRef.subresource !== undefined) return false;
  if (objectRef.namespace !== namespace || (verb !== "create" && verb !== "delete")) return false;
  return (responseStatus?.code ?? 500) < 300;
}
