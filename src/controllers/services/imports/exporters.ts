import { type EndpointSlice, objectKey, type ServiceExport, type Stored } from "../../../api/kubernetes.ts";
import { type Networks, networkOf } from "../../../copies/joined-slices.ts";
import { type ExportedService, mayBeExported } from "../../../copies/service-imports.ts";
import type { ClusterWatches } from "./cluster-watches.ts";

export interface WatchedCluster {
  /** Name of the member. Undefined: the host. */
  readonly cluster: string | undefined;
  readonly watches: ClusterWatches;
}

export interface ImportRef {
  readonly namespace: string;
  readonly name: string;
}

/** Exports of one name that a cluster sees. */
export interface Exporters {
  readonly services: readonly (ExportedService & { readonly slices: readonly Stored<EndpointSlice>[] })[];
  /** Clusters whose export is not known. */
  readonly unread: readonly (string | undefined)[];
}

/** Returns the exports that a cluster sees: the host's, and those of members in its network. A host without a network sees all. */
export function exportersOf(
  ref: ImportRef,
  { to, networks, clusters }: { to: string | undefined; networks: Networks; clusters: readonly WatchedCluster[] },
): Exporters {
  const network = networkOf(networks, to);
  const services: Exporters["services"][number][] = [];
  const unread: (string | undefined)[] = [];
  for (const { cluster, watches } of clusters) {
    const other = networkOf(networks, cluster);
    const isSeen =
      cluster === undefined || (other !== undefined && (other === network || (to ?? network) === undefined));
    if (!isSeen) continue;
    const { exports } = watches;
    const exported = exports.store.get(objectKey(ref));
    const sources = exported && watches.sources(ref.namespace, ref.name);
    if (!exports.store.synced || (exported !== undefined && sources === undefined)) unread.push(cluster);
    else if (exported !== undefined && sources?.service !== undefined && isStanding(exported)) {
      const { service, slices } = sources;
      if (mayBeExported(service)) services.push({ cluster, exported, service, slices });
    }
  }
  return { services, unread };
}

export function isStanding({ metadata }: Stored<ServiceExport>): boolean {
  return metadata.deletionTimestamp === undefined;
}
