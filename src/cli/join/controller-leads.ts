import { CONTROLLER_LEASE, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { leases } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { Failure } from "../failure.ts";
import { waitFor } from "../wait.ts";

const LEASE = { namespace: SYSTEM_NAMESPACE, name: CONTROLLER_LEASE };
const LEASE_TEXT = `Lease ${LEASE.namespace}/${LEASE.name}`;
const DEFAULT_LEASE_SECONDS = 15;

/**
 * Waits until a controller leads, without which no member becomes Ready: images may still be pulled. Rejects with a Failure when
 * none does in time. Whoever may not read the Lease is not held up.
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
      // The clock of this machine may be ahead of the controller's: a renewal that is seen tells, too.
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

/** When the Lease was renewed last, if somebody holds it. */
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
