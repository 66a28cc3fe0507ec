import type { ClusterClient } from "../../../src/kube/client.ts";
import { leases } from "../../../src/kube/resources.ts";

const HOUR_MS = 3_600_000;

/** Makes the leader's Lease one whose last renewal the API server has seen an hour earlier, as a backup of that time has it. */
export async function ageLease(host: ClusterClient): Promise<void> {
  const ref = { namespace: "legation-system", name: "legation-controller" };
  const { metadata, ...lease } = await host.get(leases, ref);
  const hourBefore = (time = ""): string => new Date(Date.parse(time) - HOUR_MS).toISOString();
  const managedFields = metadata.managedFields?.map((entry) => ({ ...entry, time: hourBefore(entry.time) })) ?? [];
  // Times that are all that changes would not be stored.
  const annotations = { ...metadata.annotations, aged: new Date().toISOString() };
  await host.replace(leases, { ...lease, metadata: { ...metadata, annotations, managedFields } });
}
