import { setTimeout as sleep } from "node:timers/promises";
import { WHOLE_KEY } from "../../src/api/keys.ts";
import type { Job } from "../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { jobs } from "../../src/kube/resources.ts";
import { template } from "../support/builders/workload.ts";
import type { Cluster } from "../support/clusters/types.ts";
import type { Legation } from "../support/legation/start.ts";
import { clientOf, countOf, makeNamespace, removeNamespace, WRITERS } from "./bursts.ts";
import type { Figure } from "./figures.ts";
import { differenceOf, type Usage, usageOf } from "./process-usage.ts";
import { BENCH_MANAGER, jobWrites, SameWrites } from "./same-writes.ts";

export interface DispatchBenchOptions {
  readonly host: Cluster;
  readonly members: readonly Cluster[];
  readonly legation: Pick<Legation, "controller" | "webhook">;
  /** Number of Jobs. */
  readonly count: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

/**
 * `direct`: the Jobs are created in the members, in turns. `same writes`: they are created on the host, and a loop makes the writes
 * that Legation makes. `whole`: they are created on the host.
 */
type Way = "direct" | "same writes" | "whole";

interface Run {
  /** Until the members have all Jobs. */
  readonly seconds: number;
  /** Until the host shows the status of all. */
  readonly followedSeconds: number;
  readonly cpu: Usage;
}

// A machine that becomes slower or faster in the meantime favours none.
const ORDER: readonly Way[] = ["direct", "same writes", "whole", "whole", "same writes", "direct"];
// The namespace's label for Legation is read within this time.
const SEEN_MS = 2_000;
const ASK_AGAIN_MS = 100;
const MOST_MS = 300_000;

/** Measures how many whole Jobs a second get to members. They are suspended, so that no pod takes processor time. */
export async function benchDispatch(options: DispatchBenchOptions): Promise<void> {
  const { host, members, count, onProgress, onFigure } = options;
  const hostClient = clientOf(host);
  const memberClients = members.map(clientOf);
  const all = [hostClient, ...memberClients];
  const usage = usageOf(options);
  const runs: Record<Way, Run[]> = { direct: [], "same writes": [], whole: [] };
  const told = (name: string, value: number, unit: string, target?: Figure["target"]): void =>
    onFigure({ name: `${count} whole Jobs: ${name}`, value, unit, ...(target === undefined ? {} : { target }) });
  try {
    for (const [index, way] of ORDER.entries()) {
      onProgress(`${count} whole Jobs, run ${index + 1} of ${ORDER.length}: ${way}`);
      const namespace = `bench-dispatch-${index}`;
      await makeNamespace(hostClient, way === "whole", namespace);
      await Promise.all(memberClients.map((client) => makeNamespace(client, false, namespace)));
      await sleep(SEEN_MS);
      const one = await run(way, { host: hostClient, members: memberClients, namespace, count, usage });
      runs[way].push(one);
      told(`${way}, run ${runs[way].length}`, count / one.seconds, "Jobs/s");
      await removeNamespace([hostClient], namespace);
      await removeNamespace(memberClients, namespace);
    }
    const rate = (way: Way, part: "seconds" | "followedSeconds" = "seconds"): number =>
      count / mean(runs[way].map((one) => one[part]));
    told("whole / direct", rate("whole") / rate("direct"), "");
    told("the same writes / direct", rate("same writes") / rate("direct"), "");
    told("whole / the same writes", rate("whole") / rate("same writes"), "", { atLeast: 0.9 });
    const followed = rate("whole", "followedSeconds") / rate("same writes", "followedSeconds");
    told("the same until the host shows their status", followed, "", { atLeast: 0.9 });
    for (const way of Object.keys(runs) as Way[]) {
      for (const group of Object.keys(usage())) {
        const ms = mean(runs[way].map(({ cpu }) => cpu[group] ?? 0)) / count;
        told(`processor time for each, ${way}: ${group}`, ms, "ms");
      }
    }
  } finally {
    await Promise.all(all.map((client) => client.close()));
  }
}

interface RunOptions {
  readonly host: ClusterClient;
  readonly members: readonly ClusterClient[];
  readonly namespace: string;
  readonly count: number;
  readonly usage: () => Usage;
}

async function run(way: Way, { host, members, namespace, count, usage }: RunOptions): Promise<Run> {
  const writes =
    way === "same writes" ? new SameWrites(host, members, namespace, jobWrites(host, namespace)) : undefined;
  await writes?.start();
  const [startedAt, before] = [performance.now(), usage()];
  const secondsUntil = async (done: () => Promise<boolean>): Promise<number> => {
    while (!(await done())) {
      if (performance.now() - startedAt > MOST_MS) throw new Error(`${count} Jobs, ${way}: not done in time`);
      await sleep(ASK_AGAIN_MS);
    }
    return (performance.now() - startedAt) / 1000;
  };
  await createAll(way === "direct" ? members : [host], namespace, count, way);
  const seconds = await secondsUntil(async () => {
    const counts = await Promise.all(members.map((client) => countOf(client, jobs, namespace)));
    return counts.reduce((sum, one) => sum + one, 0) >= count;
  });
  // In the members, their own Job controllers set the status.
  const followed = way === "direct" ? members : [host];
  const followedSeconds = await secondsUntil(async () => {
    const lists = await Promise.all(
      followed.map((client) => client.list(jobs, { namespace, dropManagedFields: true })),
    );
    return lists.every(({ items }) => items.every(isSuspended));
  });
  await writes?.stop();
  return { seconds, followedSeconds, cpu: differenceOf(usage(), before) };
}

function isSuspended({ status }: Job): boolean {
  return status?.conditions?.some(({ type }) => type === "Suspended") === true;
}

async function createAll(targets: readonly ClusterClient[], namespace: string, count: number, way: Way): Promise<void> {
  let next = 0;
  const annotations = way === "whole" ? { [WHOLE_KEY]: "true" } : {};
  const spec = {
    suspend: true,
    template: template({ restartPolicy: "Never" }) as NonNullable<Job["spec"]>["template"],
    ...(way === "same writes" ? { managedBy: BENCH_MANAGER } : {}),
  };
  const work = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      const metadata = { name: `job-${index}`, namespace, annotations };
      await targets[index % targets.length]?.create(jobs, { apiVersion: "batch/v1", kind: "Job", metadata, spec });
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, work));
}

function mean(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}
