import { INSTALLED_LABELS, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { EndpointSlice } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { endpointSlices } from "../../kube/resources.ts";

/** Where the leader serves the hub, for a Service without a selector. */
export interface HubEndpoint {
  /** Name of the Service in Legation's namespace. */
  readonly service: string;
  /** IP address of this process. */
  readonly address: string;
  readonly port: number;
}

/** Makes this process the only endpoint of the hub's Service: the other replicas do not listen. Rejects with KubeError. */
export async function publishEndpoint(
  host: ClusterClient,
  { service, address, port }: HubEndpoint,
  signal: AbortSignal,
): Promise<void> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: service };
  const body: EndpointSlice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      ...ref,
      labels: {
        "kubernetes.io/service-name": service,
        "endpointslice.kubernetes.io/managed-by": "controller.legation.dev",
        ...INSTALLED_LABELS,
      },
    },
    addressType: address.includes(":") ? "IPv6" : "IPv4",
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: "hub", port, protocol: "TCP" }],
  };
  await host.patch(endpointSlices, ref, { type: "apply", body, force: true }, { fieldManager: "legation", signal });
}
