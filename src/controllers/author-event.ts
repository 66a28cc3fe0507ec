import type { KubeEvent } from "../api/kubernetes.ts";
import { timestamp } from "../api/timestamp.ts";

/** The object that an event is about; without a kind, a Pod. */
export interface About {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly uid: string;
}

/** What an event says. */
export interface EventParts {
  readonly reason: string;
  readonly message: string;
  readonly type: "Normal" | "Warning";
  /** End of the event's name. */
  readonly suffix: string;
  /** Epoch ms. */
  readonly at: number;
}

/** An event for the author of an object. Its name is chosen here, and not by the API server: one whose answer was lost is not made twice. */
export function authorEvent(
  { apiVersion = "v1", kind = "Pod", namespace = "default", name, uid }: About,
  { reason, message, type, suffix, at }: EventParts,
): KubeEvent {
  const time = timestamp(at);
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace, name: `${stemOf(name)}.${suffix}` },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    type,
    reason,
    // The API server refuses longer ones (events.k8s.io/v1 validation).
    message: message.slice(0, 1024),
    source: { component: "legation" },
    reportingComponent: "legation.dev/controller",
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

/** As much of an object's name as an event's has room for. */
function stemOf(name: string): string {
  return name.slice(0, 200).replace(/[-.]+$/, "");
}
