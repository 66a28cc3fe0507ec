import { defined } from "../api/defined.ts";
import { CONTROLLER_LEASE, LEADERLESS_ANNOTATION, SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { ClusterClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { LeaderElector } from "../runtime/leader-election.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ControllersOptions } from "./options.ts";
import { type RunningControllers, startControllers } from "./start-controllers.ts";

export interface RunWhileLeadingOptions {
  /** A client for the Lease only: renewals must not queue behind other requests. */
  readonly electionClient: ClusterClient;
  /** Makes the controllers; their clients must refuse writes when nothing is left of the lease. */
  readonly controllers: (
    leaseLeftMs: () => number | undefined,
  ) => Omit<ControllersOptions, "clock" | "log" | "election">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Name of this process among those that may lead; no other process may have it at the same time. */
  readonly identity?: string | undefined;
  /** Time that others wait after the last renewal they saw. Default 15 s. */
  readonly leaseDurationMs?: number;
  readonly onLeading?: (leading: boolean) => void;
}

/** A process that lost its lease must end: the next one begins without memory. */
export async function runWhileLeading(
  options: RunWhileLeadingOptions,
  signal: AbortSignal,
): Promise<"stopped" | "lost"> {
  const { clock, log, electionClient, onLeading, leaseDurationMs = 15_000 } = options;
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  let starting: Promise<RunningControllers | undefined> = Promise.resolve(undefined);
  const elector = new LeaderElector({
    client: electionClient,
    namespace: SYSTEM_NAMESPACE,
    name: CONTROLLER_LEASE,
    ...defined({ identity: options.identity }),
    // The proportions of client-go's defaults: 15, 10 and 2 seconds.
    leaseDurationMs,
    renewDeadlineMs: (leaseDurationMs * 2) / 3,
    retryPeriodMs: (leaseDurationMs * 2) / 15,
    leaderlessAnnotation: LEADERLESS_ANNOTATION,
    clock,
    log,
    onStartedLeading: () => {
      onLeading?.(true);
      const made = options.controllers(() => elector.leftMs());
      starting = startControllers({ ...made, clock, log, election: elector }, ended).catch((error: unknown) => {
        if (!ended.aborted) log.error({ err: error }, "controllers did not start");
        failed.abort(error);
        return undefined;
      });
    },
    onStoppedLeading: async () => {
      onLeading?.(false);
      failed.abort(new Error("no longer leading"));
      await (await starting)?.stop();
    },
  });
  elector.start();
  const onEnd = (): void => void elector.stop();
  ended.addEventListener("abort", onEnd, { once: true });
  if (ended.aborted) onEnd();
  await elector.finished();
  ended.removeEventListener("abort", onEnd);
  return signal.aborted ? "stopped" : "lost";
}
