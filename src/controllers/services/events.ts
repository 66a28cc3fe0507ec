import type { KubeEvent, KubeObject, Stored } from "../../api/kubernetes.ts";

/** The event that tells on a Service, or what belongs to it, why something is not in a member. */
export function serviceEvent(
  { apiVersion = "v1", kind = "Service", metadata }: Stored<KubeObject>,
  reason: string,
  message: string,
  now: number,
): KubeEvent {
  const { name, namespace = "default", uid } = metadata;
  const at = new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
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
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  };
}
