import { CONTROLLER_LEASE, SYSTEM_NAMESPACE } from "../../../api/keys.ts";
import type { Lease, Stored } from "../../../api/kubernetes.ts";
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
  const lease = await host.find(leases, { namespace: SYSTEM_NAMESPACE, name: CONTROLLER_LEASE }, { signal });
  return [leaseFinding(lease, { now, inCluster })];
}

/** Judges the controllers' Lease. `now`: the API server's time, epoch ms. */
export function leaseFinding(
  lease: Stored<Lease> | undefined,
  { now, inCluster }: { readonly now: number; readonly inCluster: boolean },
): Finding {
  const remedy = inCluster
    ? `kubectl -n ${SYSTEM_NAMESPACE} rollout restart deployment legation-controller; kubectl -n ${SYSTEM_NAMESPACE} logs deployment/legation-controller`
    : "start `legation controller`, and read its log";
  if (lease === undefined) return fail("no controller leads, and none has ever led", remedy);
  const { holderIdentity: holder = "", leaseDurationSeconds = 15 } = lease.spec ?? {};
  const renewed = renewedAt(lease);
  const since = Number.isNaN(renewed) ? "" : ` for ${age(now - renewed)}`;
  if (holder === "") return fail(`no controller leads${since}: the last one stopped`, remedy);
  const ended = renewed + leaseDurationSeconds * 1000;
  // The server's clock is known to a second.
  if (Number.isNaN(renewed) || now > ended + CLOCK_MARGIN_MS) {
    return fail(`no controller leads: ${holder} has not renewed its lease${since}`, remedy);
  }
  return ok(`a controller leads (${holder}), and renewed its lease ${age(now - renewed)} ago`);
}

const CLOCK_MARGIN_MS = 2_000;
