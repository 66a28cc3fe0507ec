import type { KubeEvent, Stored } from "../../../src/api/kubernetes.ts";

/** Overrides of the built event's defaults. */
export type EventParts = Partial<Omit<KubeEvent, "metadata">> & { readonly uid?: string; readonly name?: string };

/** A kubelet's event about the delegate of `web-0`, as a member's API server holds it. */
export function kubeletEvent({
  uid = "0f8fad5b-d9cb-469f-a165-70867728950e",
  name,
  ...parts
}: EventParts = {}): Stored<KubeEvent> {
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: {
      namespace: "team",
      name: name ?? `web-0.${uid.slice(0, 8)}`,
      uid,
      resourceVersion: "7",
      creationTimestamp: "2024-01-01T00:00:00Z",
    },
    involvedObject: {
      apiVersion: "v1",
      kind: "Pod",
      namespace: "team",
      name: "web-0",
      uid: "delegate-uid",
      resourceVersion: "5",
      fieldPath: "spec.containers{main}",
    },
    type: "Normal",
    reason: "Started",
    message: "Container started",
    source: { component: "kubelet", host: "node-1" },
    reportingComponent: "kubelet",
    reportingInstance: "node-1",
    firstTimestamp: "2024-01-01T00:00:00Z",
    lastTimestamp: "2024-01-01T00:00:00Z",
    count: 1,
    ...parts,
  };
}
