import { SHARDS_ANNOTATION, SYSTEM_NAMESPACE } from "../../../api/keys.ts";
import type { Lease, Stored } from "../../../api/kubernetes.ts";
import { leaseOf } from "../../../api/shards.ts";
import { age } from "../../../api/wording.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { leases } from "../../../kube/resources.ts";
import { renewedAt } from "../../../runtime/leaderless-intervals.ts";
import { type Finding, fail, ok } from "./finding.ts";

/** Checks that a controller leads. Rejects with KubeError. */
export async function controllerFindings(
  host: ClusterClient,
  { now, inCluster, signal }: { readonly now: number; readonly inCluster: boolean; readonly signal: AbortSignal },
): Promise<readonly Finding[]> {
  const find = (index: number): Promise<Stored<Lease> | undefined> =>
    host.find(leases, { namespace: SYSTEM_NAMESPACE, name: leaseOf(index) }, { signal });
  const first = await find(0);
  const others = Array.from({ length: countOf(first) - 1 }, (_, index) => find(index + 1));
  const all = [first, ...(await Promise.all(others))];
  return all.map((lease, index) =>
    leaseFinding(lease, { now, inCluster, shard: all.length === 1 ? "" : ` shard ${index}` }),
  );
}

/** Returns the number of shards that the holder of a Lease counts. */
function countOf(lease: Stored<Lease> | undefined): number {
  return Number(lease?.metadata.annotations?.[SHARDS_ANNOTATION] ?? 1);
}

/** Judges the Lease of a shard, which the text names, or of all. `now`: the API server's time, epoch ms. */
export function leaseFinding(
  lease: Stored<Lease> | undefined,
  { now, inCluster, shard }: { readonly now: number; readonly inCluster: boolean; readonly shard: string },
): Finding {
  const remedy = inCluster
    ? `kubectl -n ${SYSTEM_NAMESPACE} rollout restart deployment legation-controller; kubectl -n ${SYSTEM_NAMESPACE} logs deployment/legation-controller`
    : "start `legation controller`, and read its log";
  if (lease === undefined) return fail(`no controller leads${shard}, and none has ever led`, remedy);
  const { holderIdentity: holder = "", leaseDurationSeconds = 15 } = lease.spec ?? {};
  const renewed = renewedAt(lease);
  const since = Number.isNaN(renewed) ? "" : ` for ${age(now - renewed)}`;
  if (holder === "") return fail(`no controller leads${shard}${since}: the last one stopped`, remedy);
  const ended = renewed + leaseDurationSeconds * 1000;
  // The server's clock is known to a second.
  if (Number.isNaN(renewed) || now > ended + CLOCK_MARGIN_MS) {
    return fail(`no controller leads${shard}: ${holder} has not renewed its lease${since}`, remedy);
  }
  return ok(`a controller leads${shard} (${holder}), and renewed its lease ${age(now - renewed)} ago`);
}

const CLOCK_MARGIN_MS = 2_000;
