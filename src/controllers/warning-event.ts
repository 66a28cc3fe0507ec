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

/** Tells the author of an object why it is not as it might be; `at` in epoch ms. A new message is a new event. */
export function warningEvent(
  { apiVersion = "v1", kind = "Pod", namespace = "default", name, uid }: About,
  { reason, message, at }: { readonly reason: string; readonly message: string; readonly at: number },
): KubeEvent {
  const time = timestamp(at);
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { generateName: `${name.slice(0, 200)}.`, namespace },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    type: "Warning",
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
