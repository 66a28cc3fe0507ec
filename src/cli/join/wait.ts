import type { Cluster } from "../../api/cluster.ts";
import { CONTROLLER_LEASE, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { leases } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { Failure } from "../shared/failure.ts";
import { readable } from "../shared/reading.ts";
import type { HostContext } from "../shared/session.ts";
import { waitFor, withoutRepeats } from "../shared/wait.ts";

const LEASE = { namespace: SYSTEM_NAMESPACE, name: CONTROLLER_LEASE };
const LEASE_TEXT = `Lease ${LEASE.namespace}/${LEASE.name}`;

/**
 * Waits until a controller leads, since no member becomes Ready without one. Rejects with `Failure` on timeout. An account that
 * may not read the Lease does not wait.
 */
export async function waitForController({ host, signal, report }: HostContext, timeoutMs: number): Promise<void> {
  let first: string | undefined;
  const tell = withoutRepeats(report);
  const leads = await waitFor(
    async () => {
      const read = await readable(host.find(leases, LEASE, { signal }).then((lease) => ({ lease })));
      if (read === undefined) return true;
      const { holderIdentity, renewTime, leaseDurationSeconds = 15 } = read.lease?.spec ?? {};
      if (holderIdentity && renewTime) {
        // This machine's clock may be ahead of the controller's, so an observed renewal counts as well.
        first ??= renewTime;
        if (renewTime !== first || realClock.wall() - Date.parse(renewTime) <= leaseDurationSeconds * 1000) return true;
      }
      tell(`${host.cluster}: no controller leads yet (${LEASE_TEXT}); waiting for one`);
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

/** Waits until the controller reports the Cluster as Ready, at `server` if one is given. Rejects with `Failure` on timeout. */
export async function waitReady(
  name: string,
  server: string | undefined,
  timeoutMs: number,
  { host, signal, report }: HostContext,
): Promise<Stored<Cluster>> {
  let problem: string | undefined;
  const tell = withoutRepeats(report);
  const ready = await waitFor(
    async () => {
      const cluster = await host.get(clusters, { name }, { signal });
      const { server: current, conditions = [] } = cluster.status ?? {};
      // Version 0.1.0 of the controller does not report its server.
      if (server !== undefined && current !== undefined && !isSameServer(current, server)) {
        problem = `the controller has not gone over to ${server} yet`;
        return undefined;
      }
      const condition = conditions.find(({ type }) => type === "Ready");
      if (condition?.status === "True") return cluster;
      problem = condition?.message ?? problem;
      if (problem !== undefined) tell(`${name}: not ready: ${problem}`);
      return undefined;
    },
    { timeoutMs, signal },
  );
  if (ready !== undefined) return ready;
  const seconds = timeoutMs / 1000;
  throw new Failure("notReady", {
    object: `Cluster ${name}`,
    field: "status.conditions[Ready]",
    problem:
      problem === undefined
        ? `no controller reported on it within ${seconds} s`
        : `was not True within ${seconds} s: ${problem}`,
    remedy:
      `${problem === undefined ? "check that `legation controller` runs" : "repair that"}: it has joined, and becomes Ready ` +
      `then; \`legation join\` again replaces credentials and address, \`legation unjoin ${name}\` takes it out`,
  });
}

/** Reports whether two URLs name the same API server. */
export function isSameServer(current: string, wanted: string): boolean {
  const [one, other] = [current, wanted].map((url) => URL.parse(url)?.href.replace(/\/+$/, ""));
  return one === other;
}
