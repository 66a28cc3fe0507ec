import type { Cluster } from "../../../api/cluster.ts";
import { NODE_LEASE_NAMESPACE, virtualNodeName } from "../../../api/keys.ts";
import type { Lease, Stored } from "../../../api/kubernetes.ts";
import { age } from "../../../api/wording.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { ServedResource } from "../../../kube/optional-resource.ts";
import { leases, serviceImports } from "../../../kube/resources.ts";
import { leftOut, readinessOf } from "../members.ts";
import { type Finding, ok, warn } from "./finding.ts";

/** Checks that a member of a network has the endpoints of the other clusters. Rejects with KubeError. */
export async function networkFindings(
  host: ClusterClient,
  cluster: Stored<Cluster>,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<readonly Finding[]> {
  if (cluster.spec.network === undefined) return [];
  const ref = { namespace: NODE_LEASE_NAMESPACE, name: virtualNodeName(cluster.metadata.name) };
  return [endpointsFinding(cluster, await host.find(leases, ref, { signal }), now)];
}

/** Judges the age of the endpoints, which the controller renews as it does the Lease of the member's node. `now`: epoch ms. */
export function endpointsFinding(cluster: Stored<Cluster>, lease: Stored<Lease> | undefined, now: number): Finding {
  const { name } = cluster.metadata;
  const outside = leftOut(cluster);
  if (outside !== undefined) return { ...outside, state: "FAIL" };
  const what = `${name}: the endpoints of other clusters in network ${cluster.spec.network}`;
  const { renewTime, leaseDurationSeconds = 0 } = lease?.spec ?? {};
  const renewed = Date.parse(renewTime ?? "");
  const lost = readinessOf(cluster, undefined).ready === "True" ? Number.NaN : readySince(cluster);
  const isExpired = renewed + leaseDurationSeconds * 1000 < now;
  const since = [lost, isExpired ? renewed : Number.NaN].filter((at) => !Number.isNaN(at));
  if (since.length === 0) return ok(`${what} follow their pods`);
  return warn(
    `${what} are as they were ${age(now - Math.min(...since))} ago: clients may be led to pods that are gone`,
    `see the other findings about the controller and ${name}: endpoints are brought up to date once it is reached again`,
  );
}

/** Checks that a member of a network serves imports. Rejects with KubeError. */
export async function importsFindings(
  member: ClusterClient,
  { metadata: { name }, spec: { network } }: Stored<Cluster>,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (network === undefined) return [];
  const served = await new ServedResource(member, serviceImports).find(signal);
  if (served !== undefined) return [ok(`${name}: exported Services of network ${network} are imported`)];
  const remedy = "install the CustomResourceDefinitions of sigs.k8s.io/mcs-api there: docs/services.md";
  return [
    warn(`${name} serves no ServiceImports: it imports none of the exported Services of network ${network}`, remedy),
  ];
}

function readySince({ status }: Stored<Cluster>): number {
  return Date.parse(status?.conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime ?? "");
}
