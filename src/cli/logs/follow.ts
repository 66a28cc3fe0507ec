import type { Job, Stored } from "../../api/kubernetes.ts";
import { unlessAborted } from "../../kube/abort.ts";
import { Slots } from "../../kube/limits.ts";
import type { Selection } from "../../kube/list.ts";
import { jobs } from "../../kube/resources.ts";
import { isFinished } from "../../whole/jobs/kind.ts";
import { fanOut } from "../multicluster/fan-out.ts";
import { asksForSeveralPods } from "./containers.ts";
import { FollowedCluster } from "./followed-cluster.ts";
import type { LogOptions, LogOutput } from "./show.ts";
import { isRunOf, type LogSource, named, openOrTell, placesOf, watched } from "./sources.ts";

export interface FollowLogsOptions extends LogOptions {
  readonly maxStreams: number;
}

export interface FollowContext extends LogOutput {
  readonly host: LogSource;
  /** Opens one of `placesOf`. Rejects with `Failure`. */
  readonly open: (place: string) => Promise<LogSource>;
}

/** Prints the logs of a Job in all its clusters as they grow, until the Job is over and they are all read. */
export async function followLogs(job: Stored<Job>, options: FollowLogsOptions, context: FollowContext): Promise<void> {
  const { host, open, gaps, signal } = context;
  const { namespace, name } = job.metadata;
  const over = Promise.withResolvers<void>();
  const streams = new Slots(options.maxStreams);
  context.printer.isPrefixed = asksForSeveralPods(job);
  const clusters = new Map<string, Promise<FollowedCluster | undefined>>();
  const begin = async (place: string): Promise<FollowedCluster | undefined> => {
    const source = await openOrTell(place, open, gaps);
    const cluster = source && new FollowedCluster(source, job, options, { ...context, streams });
    void cluster?.start();
    return cluster;
  };
  const look = (): void => {
    const seen = watch.store.list().find((found) => isRunOf(found, job)) ?? (watch.store.synced ? undefined : job);
    const found = seen === undefined ? [] : placesOf(seen);
    if (seen !== undefined && found.length === 0)
      gaps.note(`Job ${namespace}/${name} has no member yet; \`legation status job/${name}\` says why`);
    for (const place of found) {
      if (clusters.has(place)) continue;
      const beginning = begin(place);
      clusters.set(place, beginning);
      beginning.catch(over.reject);
    }
    if (seen === undefined || seen.metadata.deletionTimestamp !== undefined || isFinished(seen)) over.resolve();
  };
  const watch = watched(host, jobs, named(job), context, look);
  try {
    look();
    watch.whenSynced(signal).then(look, over.reject);
    await unlessAborted(over.promise, signal);
    await Promise.all([...clusters.values()].map(async (cluster) => (await cluster)?.finish()));
  } finally {
    await watch.stop();
    const started = await Promise.allSettled(clusters.values());
    for (const each of started) if (each.status === "fulfilled") await each.value?.stop();
  }
}

export async function followPods(
  selection: Selection,
  sources: readonly LogSource[],
  options: FollowLogsOptions & { readonly isSingle: boolean },
  context: Omit<FollowContext, "host" | "open">,
): Promise<void> {
  const streams = new Slots(options.maxStreams);
  context.printer.isPrefixed = !options.isSingle;
  const clusters = sources.map((source) => new FollowedCluster(source, selection, options, { ...context, streams }));
  try {
    void fanOut(clusters, context.clock, (cluster) => cluster.start());
    await Promise.all(clusters.map((cluster) => cluster.finish()));
  } finally {
    await Promise.all(clusters.map((cluster) => cluster.stop()));
  }
}
