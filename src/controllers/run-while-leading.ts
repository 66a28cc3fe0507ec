import { LEADERLESS_ANNOTATION, SHARDS_ANNOTATION, SYSTEM_NAMESPACE } from "../api/keys.ts";
import { isFirst, leaseOf, type Shard } from "../api/shards.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { LeaderElector, type LeaderElectorOptions } from "../runtime/leader-election.ts";
import type { Interval } from "../runtime/leaderless-intervals.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { ControllersOptions } from "./options.ts";
import { ShardLeases } from "./shard-leases.ts";
import { type RunningControllers, startControllers } from "./start-controllers.ts";

export interface RunWhileLeadingOptions {
  /** A client for Leases only: renewals must not queue behind other requests. */
  readonly electionClient: ClusterClient;
  /** Makes the controllers; their clients must refuse writes when nothing is left of the lease. */
  readonly controllers: (
    leaseLeftMs: () => number | undefined,
  ) => Omit<ControllersOptions, "clock" | "log" | "election" | "shard">;
  readonly shard: Shard;
  /** Asked before a free Lease is taken. Undefined: it is always taken. */
  readonly mayTake: (() => boolean) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Name of this process among those that may lead; no other process may have it at the same time. */
  readonly identity: string;
  /** Time that others wait after the last renewal they saw. Default 15 s. */
  readonly leaseDurationMs?: number;
  readonly onLeading?: (leading: boolean) => void;
}

export const LEASE_DURATION_MS = 15_000;

/** Returns the proportions of client-go's defaults: 15, 10 and 2 seconds. */
export function leasePeriods(
  leaseDurationMs: number,
): Required<Pick<LeaderElectorOptions, "leaseDurationMs" | "renewDeadlineMs" | "retryPeriodMs">> {
  return { leaseDurationMs, renewDeadlineMs: (leaseDurationMs * 2) / 3, retryPeriodMs: (leaseDurationMs * 2) / 15 };
}

/** A process that lost its lease must end: the next one begins without memory. */
export async function runWhileLeading(
  options: RunWhileLeadingOptions,
  signal: AbortSignal,
): Promise<"stopped" | "lost"> {
  const { shard, mayTake, identity, clock, log, electionClient: client, onLeading } = options;
  const periods = leasePeriods(options.leaseDurationMs ?? LEASE_DURATION_MS);
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  let starting: Promise<RunningControllers | undefined> = Promise.resolve(undefined);
  const elector = new LeaderElector({
    client,
    namespace: SYSTEM_NAMESPACE,
    name: leaseOf(shard.index),
    identity,
    ...periods,
    leaderlessAnnotation: LEADERLESS_ANNOTATION,
    annotations: { [SHARDS_ANNOTATION]: shard.count === 1 ? undefined : String(shard.count) },
    ...(mayTake === undefined ? {} : { mayTake }),
    clock,
    log,
    onStartedLeading: () => {
      starting = startInTurn().catch((error: unknown) => {
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

  async function startInTurn(): Promise<RunningControllers> {
    const earlier = await awaitTurn(options, ended);
    onLeading?.(true);
    const made = options.controllers(() => elector.leftMs());
    const election = {
      get leaderless() {
        return [...elector.leaderless, ...earlier];
      },
      confirm: (asked: AbortSignal) => elector.confirm(asked),
    };
    const running = await startControllers({ ...made, shard, clock, log, election }, ended);
    return {
      registry: running.registry,
      stop: async () => {
        await running.stop();
        // The process may go on with other shards.
        await Promise.all([made.host.close(), made.podEvents?.host.close()]);
      },
    };
  }

  elector.start();
  const onEnd = (): void => void elector.stop();
  ended.addEventListener("abort", onEnd, { once: true });
  if (ended.aborted) onEnd();
  await elector.finished();
  ended.removeEventListener("abort", onEnd);
  return signal.aborted ? "stopped" : "lost";
}

/**
 * Waits until no namespace is in another hand under another number of shards. This Lease is held by now, so of two
 * holders that count differently at least one sees the other. Returns the times without a leader from before the Lease.
 */
async function awaitTurn(
  { shard, electionClient: client, leaseDurationMs = LEASE_DURATION_MS, clock, log }: RunWhileLeadingOptions,
  signal: AbortSignal,
): Promise<readonly Interval[]> {
  const board = new ShardLeases({ client, leaseDurationMs, clock });
  for (;;) {
    try {
      await board.read(signal);
    } catch (error) {
      // An earlier installation: no controller there has had several shards.
      if (shard.count > 1 || !isKubeError(error, "Forbidden")) throw error;
    }
    const other = board.heldByOtherCount(shard.count);
    if (other === undefined) break;
    log.info({ lease: other }, "waits for a controller that counts another number of shards");
    await clock.sleep(leasePeriods(leaseDurationMs).retryPeriodMs, signal);
  }
  if (isFirst(shard)) await board.clean(shard.count, signal);
  return board.earlier(shard);
}
