import type { Job, Stored } from "../../api/kubernetes.ts";
import type { Reflector } from "../../runtime/reflector.ts";
import { isFinished } from "../../whole/jobs/kind.ts";
import { fanOut } from "../multicluster/fan-out.ts";
import { asksForSeveralPods } from "./containers.ts";
import { FollowedCluster, StreamSlots } from "./followed-cluster.ts";
import type { LogOptions, LogOutput } from "./show.ts";
import { isRunOf, type LogSource, openOrTell, type PodSelection, placesOf, reflectorOfJob } from "./sources.ts";

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
  const { host, open, gaps, printer, signal, clock } = context;
  const { namespace = "", name, uid } = job.metadata;
  const over = Promise.withResolvers<void>();
  const places = new StreamSlots(options.maxStreams);
  const podUids = new Set<string>();
  printer.isPrefixed = asksForSeveralPods(job);
  const onPod = (podUid: string): void => {
    podUids.add(podUid);
    if (podUids.size > 1) printer.isPrefixed = true;
  };
  const clusters = new Map<string, Promise<FollowedCluster | undefined>>();
  const begin = async (place: string): Promise<FollowedCluster | undefined> => {
    const source = await openOrTell(place, open, gaps);
    if (source === undefined) return undefined;
    const cluster = new FollowedCluster(source, job, options, { ...context, places, onPod });
    void cluster.start();
    return cluster;
  };
  const see = (seen: Stored<Job>): void => {
    if (!isRunOf(seen, job)) return;
    const found = placesOf(seen);
    if (found.length === 0)
      gaps.note(`Job ${namespace}/${name} has no member yet; \`legation status job/${name}\` says why`);
    for (const place of found) {
      if (clusters.has(place)) continue;
      const beginning = begin(place);
      clusters.set(place, beginning);
      beginning.catch(over.reject);
    }
    if (isFinished(seen) || seen.metadata.deletionTimestamp !== undefined) over.resolve();
  };
  const watch: Reflector<Job> = reflectorOfJob(host, job, {
    clock,
    onEvent: ({ type, object }) => {
      if (type !== "deleted") see(object);
      else if (object.metadata.uid === uid) over.resolve();
    },
    onState: () => {
      if (watch.failing !== undefined)
        gaps.note(`the host does not answer, and is asked again: ${watch.failing.reason}`);
      if (watch.store.synced && watch.store.size === 0) over.resolve();
    },
  });
  const interrupted = (): void => over.reject(signal.reason);
  signal.addEventListener("abort", interrupted, { once: true });
  try {
    see(job);
    watch.start();
    await over.promise;
    await Promise.all([...clusters.values()].map(async (cluster) => (await cluster)?.finish()));
  } finally {
    signal.removeEventListener("abort", interrupted);
    await watch.stop();
    const started = await Promise.allSettled(clusters.values());
    for (const each of started) if (each.status === "fulfilled") await each.value?.stop();
  }
}

export async function followPods(
  selection: PodSelection,
  sources: readonly LogSource[],
  options: FollowLogsOptions & { readonly isSingle: boolean },
  context: Omit<FollowContext, "host" | "open">,
): Promise<void> {
  const places = new StreamSlots(options.maxStreams);
  context.printer.isPrefixed = !options.isSingle;
  const all = { ...context, places, onPod: () => undefined };
  const clusters = sources.map((source) => new FollowedCluster(source, selection, options, all));
  try {
    void fanOut(clusters, context.clock, (cluster) => cluster.start());
    await Promise.all(clusters.map((cluster) => cluster.finish()));
  } finally {
    await Promise.all(clusters.map((cluster) => cluster.stop()));
  }
}
