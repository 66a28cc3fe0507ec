import { clusterOfNode, RELAY_ANNOTATION, RELAY_IN_MEMBERS_ANNOTATION } from "../../api/keys.ts";
import type { EndpointSlice, Service, Stored } from "../../api/kubernetes.ts";
import { type EndpointsByMember, RELAY_SLICE_MANAGER } from "../../api/relay.ts";
import { addressKindOf } from "../../api/service-fields.ts";
import { hasSelector, SERVICE_NAME_LABEL, SLICE_MANAGER_LABEL } from "../../copies/services.ts";

type ServicePort = NonNullable<NonNullable<Service["spec"]>["ports"]>[number];
type Endpoint = NonNullable<EndpointSlice["endpoints"]>[number];

/** Addresses of the relay's replicas, by address type. */
export type Replicas = ReadonlyMap<string, readonly Endpoint[]>;

const API_VERSION = "discovery.k8s.io/v1";

/** Returns the ports of a Service that are relayed. None of one that is not: admission refuses the annotation there. */
export function relayedPorts(service: Stored<Service>): readonly ServicePort[] {
  const { annotations = {}, deletionTimestamp } = service.metadata;
  if (annotations[RELAY_ANNOTATION] === undefined || deletionTimestamp !== undefined) return [];
  if (hasSelector(service) || addressKindOf(service) !== "ClusterIP") return [];
  return (service.spec?.ports ?? []).filter(({ protocol = "TCP" }) => protocol === "TCP");
}

/**
 * Returns the EndpointSlices of a relayed Service: for each of its address families one, also without replicas, as it records the
 * ports. `inMembers`: the relays of the members that have pods of its namespace, by address type.
 */
export function slicesOf(
  service: Stored<Service>,
  recorded: ReadonlyMap<string, number>,
  replicas: Replicas,
  inMembers: (addressType: string) => EndpointsByMember,
): EndpointSlice[] {
  const { name, namespace = "", uid } = service.metadata;
  const ports = relayedPorts(service).flatMap(({ name: portName = "", appProtocol }) => {
    const port = recorded.get(portName);
    return port === undefined
      ? []
      : [{ name: portName, port, protocol: "TCP", ...(appProtocol === undefined ? {} : { appProtocol }) }];
  });
  if (ports.length === 0) return [];
  return (service.spec?.ipFamilies ?? ["IPv4"]).map((addressType) => ({
    apiVersion: API_VERSION,
    kind: "EndpointSlice",
    metadata: {
      name: `${name}-relay-${addressType.toLowerCase()}`,
      namespace,
      labels: { [SERVICE_NAME_LABEL]: name, [SLICE_MANAGER_LABEL]: RELAY_SLICE_MANAGER },
      annotations: { [RELAY_IN_MEMBERS_ANNOTATION]: JSON.stringify(inMembers(addressType)) },
      // The host's garbage collector deletes it with its Service, also while no controller leads.
      ownerReferences: [{ apiVersion: "v1", kind: "Service", name, uid, controller: true }],
    },
    addressType,
    ports,
    endpoints: [...(replicas.get(addressType) ?? [])],
  }));
}

/** Returns the replicas that the host's controller has found. Their pods are of another namespace, which a reference cannot name. */
export function replicasOf(slices: readonly Stored<EndpointSlice>[]): Replicas {
  const found = new Map<string, Endpoint[]>();
  for (const { addressType, endpoints } of slices) {
    const known = found.get(addressType) ?? [];
    const more = (endpoints ?? []).map(({ targetRef: _, ...endpoint }) => endpoint);
    found.set(
      addressType,
      [...known, ...more].toSorted((a, b) => (String(a.addresses) < String(b.addresses) ? -1 : 1)),
    );
  }
  return found;
}

/** Returns the relays that run in members, by member. A relay is ready while one of the host is connected to it. */
export function relaysByMember(
  slices: readonly Stored<EndpointSlice>[],
  addressType: string,
  isServed: (cluster: string) => boolean,
): EndpointsByMember {
  const found = slices
    .filter((slice) => slice.addressType === addressType)
    .flatMap(({ endpoints }) => endpoints ?? [])
    .flatMap(({ addresses, conditions, nodeName }) => {
      const cluster = clusterOfNode(nodeName);
      // The Service publishes those that are not ready, too: the host's relay connects to them first.
      const ready = conditions?.serving === true && conditions.terminating !== true;
      return cluster === undefined || !isServed(cluster) ? [] : [{ cluster, addresses, conditions: { ready } }];
    })
    .toSorted((a, b) => (`${a.cluster} ${a.addresses}` < `${b.cluster} ${b.addresses}` ? -1 : 1));
  const byCluster = Map.groupBy(found, ({ cluster }) => cluster);
  return Object.fromEntries(
    [...byCluster].map(([cluster, all]) => [cluster, all.map(({ cluster: _, ...endpoint }) => endpoint)]),
  );
}

/** Returns the ports that the slices record, by the name of the Service's port. */
export function recordedPorts(slices: readonly Stored<EndpointSlice>[]): Map<string, number> {
  return new Map(
    slices.flatMap(({ ports }) =>
      (ports ?? []).flatMap(({ name, port }): [string, number][] => (port === undefined ? [] : [[name ?? "", port]])),
    ),
  );
}
