import { defined } from "../api/defined.ts";
import { clusterOfNode } from "../api/keys.ts";
import type { EndpointSlice, ServiceImportSpec, Stored } from "../api/kubernetes.ts";
import { type Networks, networkOf, withHints } from "./joined-slices.ts";
import { type ExportedService, isImportedPort } from "./service-imports.ts";

type Endpoint = NonNullable<EndpointSlice["endpoints"]>[number];

/** The part of an exported Service's slice that clients of another cluster are given. */
export interface ImportedSlice extends Pick<EndpointSlice, "addressType" | "ports" | "endpoints"> {
  /** The exporting member. Undefined: the host. */
  readonly cluster: string | undefined;
  /** Name of the slice there. */
  readonly source: string;
}

/**
 * Returns what clients in a cluster are given of an exported Service's slice: endpoints in its network, for ports that the import has.
 * Undefined if that is nothing.
 */
export function importedSlice(
  slice: Stored<EndpointSlice>,
  { cluster: from, service }: ExportedService,
  imported: Pick<ServiceImportSpec, "ports" | "trafficDistribution">,
  { to, networks }: { readonly to: string | undefined; readonly networks: Networks },
): ImportedSlice | undefined {
  const { addressType } = slice;
  const ports = (slice.ports ?? []).filter(({ name }) => isImportedPort(name, service, imported));
  const network = networkOf(networks, to);
  const endpoints = (slice.endpoints ?? []).flatMap((endpoint): Endpoint[] => {
    // The host's slices have the pods of its members.
    const at = from ?? clusterOfNode(endpoint.nodeName);
    const { addresses, conditions, hostname, nodeName, zone, hints } = endpoint;
    const known = { addresses, ...defined({ conditions, hostname, zone }) };
    if (at === to && from === to) return [{ ...known, ...defined({ nodeName, hints }) }];
    const isReached = at === to || networkOf(networks, at) === network;
    return isReached ? [withHints(known, imported.trafficDistribution)] : [];
  });
  return ports.length === 0 || endpoints.length === 0
    ? undefined
    : { cluster: from, source: slice.metadata.name, addressType, ports, endpoints };
}
