import { createHash } from "node:crypto";
import { SHARDS_ANNOTATION, SYSTEM_NAMESPACE } from "../api/keys.ts";
import { ALL_NAMESPACES, REPLICA_LEASE_PREFIX } from "../api/shards.ts";
import { LeaderElector } from "../runtime/leader-election.ts";
import { LEASE_DURATION_MS, leasePeriods, type RunWhileLeadingOptions, runWhileLeading } from "./run-while-leading.ts";
import { ShardLeases } from "./shard-leases.ts";
import { planShards } from "./shard-plan.ts";

export interface RunShardsOptions extends Omit<RunWhileLeadingOptions, "shard" | "mayTake" | "onLeading" | "identity"> {
  readonly count: number;
  readonly identity: string;
  /** Called with the number of shards that this process leads. */
  readonly onLeading?: (shards: number) => void;
}

/** Leads a fair part of the shards. A process that lost the Lease of one ends. */
export async function runShards(options: RunShardsOptions, signal: AbortSignal): Promise<"stopped" | "lost"> {
  const { count, onLeading, ...shared } = options;
  if (count === 1) {
    const leading = (isLeading: boolean): void => onLeading?.(Number(isLeading));
    return runWhileLeading({ ...shared, shard: ALL_NAMESPACES, mayTake: undefined, onLeading: leading }, signal);
  }
  const { identity: me, electionClient: client, leaseDurationMs = LEASE_DURATION_MS, clock, log } = options;
  const lost = new AbortController();
  const ended = AbortSignal.any([signal, lost.signal]);
  const board = new ShardLeases({ client, leaseDurationMs, clock });
  const leading = new Set<number>();
  let wanted: ReadonlySet<number> = new Set();
  const giving = new Map<number, AbortController>();
  const presence = new LeaderElector({
    client,
    namespace: SYSTEM_NAMESPACE,
    // An identity may have characters that names of objects may not.
    name: `${REPLICA_LEASE_PREFIX}${createHash("sha256").update(me).digest("hex").slice(0, 16)}`,
    identity: me,
    ...leasePeriods(leaseDurationMs),
    annotations: { [SHARDS_ANNOTATION]: String(count) },
    clock,
    log: log.child({ lease: "replica" }),
    onStartedLeading: () => {},
    onStoppedLeading: () => {},
  });

  async function plan(): Promise<void> {
    while (!ended.aborted) {
      try {
        await board.read(ended);
        const holders = board.holders(count).map((holder, index) => (leading.has(index) ? me : holder));
        const { take, keep, give } = planShards({ me, replicas: [...new Set([me, ...board.replicas(count)])], holders });
        // A process that was killed leads again at once under its name.
        wanted = new Set([...take, ...keep]);
        for (const index of give) giving.get(index)?.abort(new Error("another replica takes the shard"));
      } catch (err) {
        if (!ended.aborted) log.warn({ err }, "the Leases of shards cannot be read");
      }
      await clock.sleep(leasePeriods(leaseDurationMs).retryPeriodMs, ended).catch(() => {});
    }
  }

  async function lead(index: number): Promise<void> {
    while (!ended.aborted) {
      const given = new AbortController();
      giving.set(index, given);
      const outcome = await runWhileLeading(
        {
          ...shared,
          shard: { index, count },
          log: log.child({ shard: index }),
          mayTake: () => wanted.has(index),
          onLeading: (isLeading) => {
            if (isLeading) leading.add(index);
            else leading.delete(index);
            onLeading?.(leading.size);
          },
        },
        AbortSignal.any([ended, given.signal]),
      );
      if (outcome === "lost") lost.abort(new Error("the Lease of a shard was lost"));
    }
  }

  presence.start();
  await Promise.all([plan(), ...Array.from({ length: count }, (_, index) => lead(index))]);
  await presence.stop();
  return signal.aborted ? "stopped" : "lost";
}
