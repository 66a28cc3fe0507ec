import { RELAY_ANNOTATION } from "../../api/keys.ts";
import { serviceEndpoints } from "../../copies/service-endpoints.ts";
import { serviceOfSlice } from "../../copies/services.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { endpointSlices, services } from "../../kube/resources.ts";
import { typeAndPorts } from "../explain/service.ts";
import type { ServiceRow } from "./model.ts";

/** Reads a namespace's Services, each with the pods that it leads to. Rejects with KubeError. */
export async function readServiceRows(
  host: ClusterClient,
  namespace: string,
  signal: AbortSignal,
): Promise<readonly ServiceRow[]> {
  const options = { namespace, dropManagedFields: true, signal };
  const [found, slices] = await Promise.all([listAll(host, services, options), listAll(host, endpointSlices, options)]);
  const slicesOf = Map.groupBy(slices, serviceOfSlice);
  return found.map((service) => {
    const { name, annotations = {} } = service.metadata;
    const { type, ports } = typeAndPorts(service);
    const relay = annotations[RELAY_ANNOTATION];
    const endpoints = serviceEndpoints(slicesOf.get(relay ?? name) ?? []);
    return {
      name,
      about: [type, ...ports, ...(relay === undefined ? [] : [`relayed to ${relay}`])].join(", "),
      ready: endpoints.filter(({ state }) => state === "ready").length,
      endpoints: endpoints.length,
      pods: endpoints.flatMap(({ endpoint: { targetRef } }) =>
        targetRef?.kind === "Pod" ? (targetRef.name ?? []) : [],
      ),
    };
  });
}
