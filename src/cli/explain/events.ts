import type { KubeEvent, KubeObject, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { events } from "../../kube/resources.ts";

export interface ToldEvent {
  /** RFC 3339. */
  readonly at: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

/** Reads the events of an object. Those of objects without a namespace are in `default`. Rejects with KubeError. */
export function readEvents(
  client: ClusterClient,
  { metadata: { namespace = "default", uid } }: Stored<KubeObject>,
  signal: AbortSignal,
): Promise<readonly KubeEvent[]> {
  return listAll(client, events, { namespace, fieldSelector: `involvedObject.uid=${uid}`, signal });
}

/** Returns when an event last occurred, in RFC 3339. */
export function lastTimeOf({ lastTimestamp, eventTime, metadata }: KubeEvent): string {
  return lastTimestamp ?? eventTime ?? metadata?.creationTimestamp ?? "";
}

/** Returns when it was first told, in RFC 3339: an event that occurs again stays the same object. */
export function firstTimeOf(event: KubeEvent): string {
  return event.metadata?.creationTimestamp ?? lastTimeOf(event);
}

/** Returns the event that occurred last, of those with the reason if one is given. */
export function lastOf(told: readonly KubeEvent[], reason?: string): KubeEvent | undefined {
  const found = reason === undefined ? [...told] : told.filter((event) => event.reason === reason);
  return found.sort((a, b) => (lastTimeOf(a) < lastTimeOf(b) ? 1 : -1))[0];
}

/** Returns what events tell, oldest first. */
export function toldEvents(told: readonly KubeEvent[]): ToldEvent[] {
  return told
    .map((event) => {
      const { type = "", reason = "", message = "" } = event;
      return { at: lastTimeOf(event), type, reason, message };
    })
    .sort((a, b) => (a.at < b.at ? -1 : 1));
}
