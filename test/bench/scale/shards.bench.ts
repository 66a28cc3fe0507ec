import { setTimeout as sleep } from "node:timers/promises";
import { isInShard, leaseOf, type Shard } from "../../../src/api/shards.ts";
import type { Figure } from "../figures.ts";
import { cpuMs } from "../process-usage.ts";
import { type Program, withController } from "./controller-process.ts";
import { type Fleet, fleetOf } from "./fleet.ts";

export interface ShardsOptions extends Program {
  /** Pods that are created at once, for each controller: each process compiles its code by itself. */
  readonly pods: number;
  readonly onProgress: (line: string) => void;
}

interface Result {
  /** Processor time for each pod of all, of the busiest replica. Where each has a core, it limits pods a second. */
  readonly busiestMs: number;
  readonly replicasMs: number;
  readonly serversMs: number;
}

const REPLICAS = 4;
/** Delegated pods a second. */
const GOAL = 1000;
const MEMBERS = 4;
const BATCH = 20;
const NAMESPACES = Array.from({ length: 64 }, (_, number) => `team-${number}`);
const PATIENCE_MS = 600_000;
// The code of each process is compiled by then.
const WARM_PODS = 500;
// Lists and copies that begin with the start have come to rest.
const REST_MS = 10_000;
const TURN_REST_MS = 2_000;

/**
 * Compares one controller with four that share the namespaces. They take turns while the others are frozen, so that each has a core
 * as it would have elsewhere. What a frozen one missed, it does in its own turn. The API servers are one process.
 */
export async function benchShards({ pods, onProgress, ...program }: ShardsOptions): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  const results: Result[] = [];
  for (const replicas of [1, REPLICAS]) {
    const fleet = await fleetOf(MEMBERS, 0);
    try {
      const result = await measure(fleet, replicas, { pods, onProgress, ...program });
      results.push(result);
      const name = `${replicas} ${replicas === 1 ? "controller" : "controllers"}`;
      figures.push(
        {
          name: `${name}: delegated pods, a core for each`,
          value: 1000 / result.busiestMs,
          unit: "/s",
          ...(replicas === 1 ? {} : { target: { atLeast: GOAL } }),
        },
        { name: `${name}: processor for each pod, the busiest one`, value: result.busiestMs, unit: "ms" },
        { name: `${name}: processor for each pod, together`, value: result.replicasMs, unit: "ms" },
        { name: `${name}: processor for each pod, the API servers in memory`, value: result.serversMs, unit: "ms" },
      );
    } finally {
      await fleet.close();
    }
  }
  const [one, several] = results;
  if (one !== undefined && several !== undefined) {
    const name = `${REPLICAS} controllers / one controller: delegated pods, a core for each`;
    figures.push({ name, value: one.busiestMs / several.busiestMs, unit: "", target: { atLeast: 2 } });
  }
  return figures;
}

function measure(fleet: Fleet, replicas: number, { pods, onProgress, ...program }: ShardsOptions): Promise<Result> {
  const { host, members } = fleet;
  const count = pods * replicas;
  const metadata = { labels: { "legation.dev/delegation": "all" } };
  for (const name of NAMESPACES)
    for (const cluster of [host, ...members]) {
      cluster.put("namespaces", { metadata: { name, ...(cluster === host ? metadata : {}) } });
    }
  const create = async (prefix: string, many: number): Promise<void> => {
    for (let index = 0; index < many; index += 1) {
      host.put("pods", fleet.pod(`${prefix}-${index}`, namespaceOf(index)));
      // Watches are served meanwhile, as by a real API server.
      if (index % BATCH === 0) await sleep(1);
    }
  };
  const flags = Array.from({ length: replicas }, (_, number) => [
    `--identity=${identityOf(number)}`,
    `--shards=${replicas}`,
    "--lease-duration=60s",
  ]);
  return withController(
    fleet,
    program,
    PATIENCE_MS,
    async ({ pids, bound }) => {
      await until(() => isShared(fleet, replicas));
      const warm = WARM_PODS * replicas;
      await create("warm", warm);
      await until(() => bound() === warm);
      await sleep(REST_MS);
      onProgress(`${replicas} of ${replicas} shards are led, ${count} pods are created`);
      const holders = holdersOf(fleet, replicas);
      const before = pids.map(cpuMs);
      const servers = process.cpuUsage();
      const freeze = (frozen: readonly number[], signal: NodeJS.Signals): void => {
        for (const pid of frozen) process.kill(pid, signal);
      };
      freeze(pids.slice(1), "SIGSTOP");
      await create("pod", count);
      let expected = warm;
      for (const [turn, pid] of pids.entries()) {
        process.kill(pid, "SIGCONT");
        const index = holders.indexOf(identityOf(turn));
        expected += countIn({ index, count: replicas }, count);
        await until(() => bound() === expected);
        // Statuses follow bindings.
        await sleep(TURN_REST_MS);
        if (turn < replicas - 1) process.kill(pid, "SIGSTOP");
      }
      freeze(pids, "SIGCONT");
      // Replicas that were stopped catch up on what the others did.
      await sleep(TURN_REST_MS);
      const used = pids.map((pid, at) => cpuMs(pid) - (before[at] ?? 0));
      const { user, system } = process.cpuUsage(servers);
      onProgress(`processor of each: ${used.join(", ")} ms`);
      return {
        busiestMs: Math.max(...used) / count,
        replicasMs: used.reduce((sum, one) => sum + one, 0) / count,
        serversMs: (user + system) / 1000 / count,
      };
    },
    flags,
  );
}

function namespaceOf(pod: number): string | undefined {
  return NAMESPACES[pod % NAMESPACES.length];
}

function identityOf(replica: number): string {
  return `replica-${replica}`;
}

/** Returns how many of the pods are in the shard. */
function countIn(shard: Shard, pods: number): number {
  return Array.from({ length: pods }, (_, index) => namespaceOf(index)).filter((name) => isInShard(shard, name)).length;
}

/** Reports whether each replica leads one shard. */
function isShared(fleet: Fleet, count: number): boolean {
  const holders = holdersOf(fleet, count);
  return new Set(holders).size === count && holders.every((holder) => holder !== undefined && holder !== "");
}

/** The identities of those who lead, by shard. */
function holdersOf({ host }: Fleet, count: number): readonly unknown[] {
  return Array.from({ length: count }, (_, index) => {
    const spec = host.get("leases", "legation-system", leaseOf(index))?.spec;
    return typeof spec === "object" && spec !== null && "holderIdentity" in spec ? spec.holderIdentity : undefined;
  });
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(20);
}
