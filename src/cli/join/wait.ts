import type { Cluster } from "../../api/cluster.ts";
import { CONTROLLER_LEASE, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { leases } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { Failure } from "../shared/failure.ts";
import type { HostContext } from "../shared/session.ts";
import { waitFor } from "../shared/wait.ts";

const LEASE = { namespace: SYSTEM_NAMESPACE, name: CONTROLLER_LEASE };
const LEASE_TEXT = `Lease ${LEASE.namespace}/${LEASE.name}`;
const DEFAULT_LEASE_SECONDS = 15;

/**
 * Waits until a controller leads, since no member becomes Ready without one. Rejects with `Failure` on timeout. An account that
 * may not read the Lease does not wait.
 */
export async function waitForController(
  host: ClusterClient,
  {
    timeoutMs,
    signal,
    report,
  }: { readonly timeoutMs: number; readonly signal: AbortSignal; readonly report: (line: string) => void },
): Promise<void> {
  let first: string | undefined;
  let told = false;
  const leads = await waitFor(
    async () => {
      const renewed = await renewal(host, signal);
      if (renewed === "unknown") return true;
      // This machine's clock may be ahead of the controller's, so an observed renewal counts as well.
      first ??= renewed?.time;
      if (renewed?.isFresh === true || (renewed !== undefined && renewed.time !== first)) return true;
      if (!told) report(`${host.cluster}: no controller leads yet (${LEASE_TEXT}); waiting for one`);
      told = true;
      return undefined;
    },
    { timeoutMs, signal },
  );
  if (leads === true) return;
  throw new Failure("notReady", {
    object: LEASE_TEXT,
    problem: `no controller has led for ${timeoutMs / 1000} s, so nothing was made`,
    remedy:
      "check that `legation controller` runs (in the cluster: `kubectl -n legation-system rollout status deployment`), " +
      "then join again, with a longer --timeout if it is slow",
  });
}

/** Reads the last renewal of the Lease. Undefined without a holder. */
async function renewal(
  host: ClusterClient,
  signal: AbortSignal,
): Promise<{ readonly time: string; readonly isFresh: boolean } | "unknown" | undefined> {
  try {
    const { holderIdentity, renewTime, leaseDurationSeconds } =
      (await host.find(leases, LEASE, { signal }))?.spec ?? {};
    if (!holderIdentity || !renewTime) return undefined;
    const heldMs = (leaseDurationSeconds ?? DEFAULT_LEASE_SECONDS) * 1000;
    return { time: renewTime, isFresh: realClock.wall() - Date.parse(renewTime) <= heldMs };
  } catch (error) {
    if (isKubeError(error, "Forbidden")) return "unknown";
    throw error;
  }
}

/** Waits until the controller reports the Cluster as Ready, at `server` if one is given. Rejects with `Failure` on timeout. */
export async function waitReady(
  name: string,
  { host, signal, report }: HostContext,
  { timeoutMs, server }: { readonly timeoutMs: number; readonly server?: string | undefined },
): Promise<Stored<Cluster>> {
  let told: string | undefined;
  const ready = await waitFor(
    async () => {
      const cluster = await host.get(clusters, { name }, { signal });
      const { server: current } = cluster.status ?? {};
      // Version 0.1.0 of the controller does not report its server.
      if (server !== undefined && current !== undefined && !isSameServer(current, server)) {
        told = `the controller has not gone over to ${server} yet`;
        return undefined;
      }
      const condition = cluster.status?.conditions?.find(({ type }) => type === "Ready");
      if (condition?.status === "True") return cluster;
      if (condition !== undefined && condition.message !== told) {
        told = condition.message;
        report(`${name}: not ready: ${told}`);
      }
      return undefined;
    },
    { timeoutMs, signal },
  );
  if (ready !== undefined) return ready;
  throw new Failure("notReady", {
    object: `Cluster ${name}`,
    field: "status.conditions[Ready]",
    problem:
      told === undefined
        ? `no controller reported on it within ${timeoutMs / 1000} s`
        : `was not True within ${timeoutMs / 1000} s: ${told}`,
    remedy:
      told === undefined
        ? "check that `legation controller` runs, then join again"
        : `repair that and join again, with a longer --timeout if it is slow`,
  });
}

/** Reports whether two URLs name the same API server. */
export function isSameServer(current: string, wanted: string): boolean {
  const [one, other] = [current, wanted].map((url) => URL.parse(url)?.href.replace(/\/+$/, ""));
  return one === other;
}
