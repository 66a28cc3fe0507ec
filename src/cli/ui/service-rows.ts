import { defined } from "../../api/defined.ts";
import { RELAY_ANNOTATION } from "../../api/keys.ts";
import { serviceEndpoints } from "../../copies/service-endpoints.ts";
import { serviceOfSlice } from "../../copies/services.ts";
import { listAll } from "../../kube/list.ts";
import { endpointSlices, services } from "../../kube/resources.ts";
import { typeAndPorts } from "../explain/service.ts";
import type { NamedService, ServiceRow } from "./model.ts";
import type { Viewer } from "./viewer.ts";

/** Reads the names of the Services of one namespace, or of all. Rejects with KubeError. */
export async function readServiceNames({ host, only, signal }: Viewer): Promise<readonly NamedService[]> {
  const found = await listAll(host, services, { ...defined({ namespace: only }), metadataOnly: true, signal });
  return found.map(({ metadata: { namespace = "", name } }) => ({ namespace, name }));
}

/** Reads a namespace's Services, each with the pods that it leads to. Rejects with KubeError. */
export async function readServiceRows({ host, signal }: Viewer, namespace: string): Promise<readonly ServiceRow[]> {
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
