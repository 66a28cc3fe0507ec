import { CLUSTER_ANNOTATION } from "../../api/keys.ts";
import type { KubeEvent, Stored } from "../../api/kubernetes.ts";
import type { Owner } from "../../pods/delegate.ts";

// An object's name has at most 253 characters; a dot and 16 digits follow the pod's.
const POD_NAME_LENGTH = 236;

// Where a pod goes is for the host to say, and Legation says it: one member's scheduler knows of one member only, and
// whoever adds nodes to the host on such a word adds them in vain.
const PLACEMENT_REASONS: ReadonlySet<string> = new Set(["FailedScheduling", "NotTriggerScaleUp"]);

/** True when the event says on the host what it says in the member. */
export function concernsHost({ reason }: KubeEvent): boolean {
  return reason === undefined || !PLACEMENT_REASONS.has(reason);
}

/**
 * A delegate's event as one about its proxy: everything as it was told, but for whom it is about. Its name follows from
 * the member's event alone, so that it is written once whoever writes it.
 */
export function mirror(event: Stored<KubeEvent>, proxy: Owner, cluster: string): KubeEvent {
  const { metadata, involvedObject, related: _, ...told } = event;
  const { namespace, name, uid } = proxy;
  const { fieldPath } = involvedObject;
  return {
    ...told,
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      name: `${name.slice(0, POD_NAME_LENGTH).replace(/[-.]+$/, "")}.${digitsOf(event)}`,
      namespace,
      annotations: { [CLUSTER_ANNOTATION]: cluster },
    },
    involvedObject: {
      apiVersion: "v1",
      kind: "Pod",
      namespace,
      name,
      uid,
      ...(fieldPath === undefined ? {} : { fieldPath }),
    },
  };
}

/**
 * The end of an event's name. Kubernetes' own components write the time of the event there, in hexadecimal nanoseconds: API servers
 * list events by name, and clients rely on it that those of a pod are listed in their order. Others get digits of their uid.
 */
function digitsOf({ metadata, involvedObject }: Stored<KubeEvent>): string {
  const start = `${involvedObject.name}.`;
  const end = metadata.name.startsWith(start) ? metadata.name.slice(start.length) : "";
  return /^[0-9a-f]{16}$/.test(end) ? end : metadata.uid.replaceAll("-", "").slice(0, 16);
}

/** What changes on an event that happens again, as a merge patch. */
export function recurrence({ count, lastTimestamp, message, series }: KubeEvent): object {
  return { count, lastTimestamp, message, series };
}

/** True for an event that has happened more than once: it may have been written before with a smaller count. */
export function recurs({ count = 1, series }: KubeEvent): boolean {
  return count > 1 || (series ?? undefined) !== undefined;
}

/** When it happened last; epoch ms. */
export function observedAt({ metadata, series, lastTimestamp, eventTime }: KubeEvent): number {
  const times = [series?.lastObservedTime, lastTimestamp, eventTime, metadata.creationTimestamp];
  return Math.max(...times.map((time) => Date.parse(time ?? "")).filter((time) => !Number.isNaN(time)), 0);
}
