import type { KubeEvent, ObjectRef } from "../../api/kubernetes.ts";

/** The event that tells an author why a pod waits, or is not where it might be; a new message is a new event. */
export function placementEvent(
  { namespace = "default", name }: ObjectRef,
  uid: string,
  reason: string,
  message: string,
  now: number,
): KubeEvent {
  const at = new Date(now).toISOString();
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { generateName: `${name.slice(0, 200)}.`, namespace },
    involvedObject: { apiVersion: "v1", kind: "Pod", namespace, name, uid },
    type: "Warning",
    reason,
    // The API server refuses longer ones (events.k8s.io/v1 validation).
    message: message.slice(0, 1024),
    source: { component: "legation" },
    reportingComponent: "legation.dev/controller",
    firstTimestamp: at.replace(/\.\d+Z$/, "Z"),
    lastTimestamp: at.replace(/\.\d+Z$/, "Z"),
    count: 1,
  };
}
