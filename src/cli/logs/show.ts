import type { Readable } from "node:stream";
import { DELEGATE_UID_ANNOTATION } from "../../api/keys.ts";
import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { Clock } from "../../runtime/clock.ts";
import { fanOut } from "../multicluster/fan-out.ts";
import type { Gaps } from "../shared/gaps.ts";
import { type ContainerChoice, chosenContainers, containerNames, logStateOf, whyNoLog } from "./containers.ts";
import { type LinePrinter, LineReader } from "./lines.ts";
import { findJobIn, type LogSource, listPodsOf, listSelected, logName, type PodSelection } from "./sources.ts";
import { type LogTarget, openLog, readLog, type StreamEnd } from "./stream.ts";

export interface LogOptions extends ContainerChoice {
  readonly timestamps: boolean;
  readonly tail?: number | undefined;
  readonly sinceMs?: number | undefined;
}

export interface LogOutput {
  readonly printer: LinePrinter;
  readonly gaps: Gaps;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** A container's log, and its name before each line. */
export interface NamedLog extends LogTarget {
  readonly name: string;
}

// Streams that are open at a time: one is printed, and the next ones are on their way.
const STREAMS = 8;

export interface FoundPod {
  readonly source: LogSource;
  readonly pod: Stored<Pod>;
}

/** Prints the present logs of pods, one after the other. What cannot be read is told of, and the rest is shown. */
export async function showLogs(pods: readonly FoundPod[], options: LogOptions, output: LogOutput): Promise<void> {
  const { printer, gaps, signal } = output;
  printer.isPrefixed = pods.length > 1;
  const logs = pods.flatMap(({ source, pod }) => logsOf(source, pod, options, gaps));
  const sinceSeconds = options.sinceMs === undefined ? undefined : Math.ceil(options.sinceMs / 1000);
  const query = { follow: false, timestamps: options.timestamps, tail: options.tail, sinceSeconds };
  const lost = new Set<LogSource>();
  const open = async (log: NamedLog): Promise<{ readonly body: Readable } | StreamEnd | undefined> =>
    lost.has(log.source) ? undefined : openLog(log, query, signal);
  for await (const [log, opened] of inOrder(logs, STREAMS, open)) {
    signal.throwIfAborted();
    if (opened === undefined) continue;
    const lines = new LineReader("absent");
    const print = (chunk: Buffer): void => {
      for (const line of lines.take(chunk)) printer.print(log.name, line);
    };
    const end = "body" in opened ? await readLog(opened.body, { follow: false, signal }, print) : opened;
    for (const line of lines.end()) printer.print(log.name, line);
    signal.throwIfAborted();
    if (end.end === "gone") gaps.note(`${log.name}: the pod is gone`);
    if (end.end === "refused") gaps.add(log.name, end.message);
    if (end.end === "cut" && "body" in opened) gaps.add(log.name, `the log was cut: ${end.message}`);
    if (end.end === "cut" && !("body" in opened)) {
      lost.add(log.source);
      gaps.add(
        log.source.name,
        `does not answer, so the logs of its pods from ${log.name} on are missing: ${end.message}`,
      );
    }
  }
}

/** Returns the logs of a pod that exist. Tells why the others do not. */
export function logsOf(source: LogSource, pod: Stored<Pod>, choice: ContainerChoice, gaps: Gaps): NamedLog[] {
  const chosen = chosenContainers(pod, choice);
  const podName = logName(source, pod);
  if (chosen.length === 0 && choice.container !== undefined) {
    gaps.add(podName, `has no container ${choice.container}; it has ${containerNames(pod).join(", ")}`);
  }
  return chosen.flatMap((container) => {
    const state = logStateOf(pod, container);
    if (state === "growing" || state === "complete") return [namedLog({ source, pod, container }, choice)];
    gaps.note(`${podName}: container ${container} ${whyNoLog(pod, container)}`);
    return [];
  });
}

export function namedLog(target: LogTarget, { all }: ContainerChoice): NamedLog {
  const podName = logName(target.source, target.pod);
  return { ...target, name: all ? `${podName}/${target.container}` : podName };
}

/** Finds the pods of a Job in all its clusters. Tells of what fails. */
export async function podsOfJob(
  job: Stored<Job>,
  sources: readonly LogSource[],
  output: LogOutput,
): Promise<readonly FoundPod[]> {
  const found = fanOut(sources, output.clock, (source) =>
    podsIn(source, output, async () => {
      const here = await findJobIn(source, job, output.signal);
      if (here !== undefined) return listPodsOf(source, here, output.signal);
      const remedy = "it is not there yet, or the kubeconfig is of another cluster";
      output.gaps.add(source.name, "has no copy of this Job", remedy);
      return [];
    }),
  );
  return (await Promise.all(found)).flat();
}

export async function selectedPods(
  selection: PodSelection,
  sources: readonly LogSource[],
  output: LogOutput,
): Promise<readonly FoundPod[]> {
  const { clock, signal } = output;
  const found = fanOut(sources, clock, (source) => {
    return podsIn(source, output, () => listSelected(source, selection, signal));
  });
  return (await Promise.all(found)).flat();
}

/** Finds the pod that has the chosen containers: the host's own, or its delegate for those that its member added. */
export async function podWith(
  pod: Stored<Pod>,
  choice: ContainerChoice,
  open: (member: string) => Promise<LogSource>,
  { host, ...output }: LogOutput & { readonly host: LogSource },
): Promise<FoundPod | undefined> {
  const member = memberOf(pod);
  const delegateUid = pod.metadata.annotations?.[DELEGATE_UID_ANNOTATION];
  const { namespace = "", name } = pod.metadata;
  const isOwn = !choice.all && (choice.container === undefined || chosenContainers(pod, choice).length > 0);
  if (isOwn || member === undefined || delegateUid === undefined) return { source: host, pod };
  const selection = { namespace, fieldSelector: `metadata.name=${name}` };
  const found = await selectedPods(selection, [await open(member)], output);
  const delegate = found.find((each) => each.pod.metadata.uid === delegateUid);
  if (delegate === undefined && !output.gaps.lacking.includes(member)) {
    output.gaps.add(`${member}/${name}`, "the pod has no delegate there any more");
  }
  return delegate;
}

async function podsIn(
  source: LogSource,
  { gaps, signal }: LogOutput,
  list: () => Promise<readonly Stored<Pod>[]>,
): Promise<readonly FoundPod[]> {
  try {
    return (await list()).map((pod) => ({ source, pod }));
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    gaps.add(source.name, error.message);
    return [];
  }
}

/** Yields each item with its result, in order. Starts at most `most` items that are not yielded yet. */
async function* inOrder<Item, Result>(
  items: readonly Item[],
  most: number,
  start: (item: Item) => Promise<Result>,
): AsyncGenerator<readonly [Item, Result]> {
  const started: Promise<readonly [Item, Result]>[] = [];
  let next = 0;
  while (next < items.length || started.length > 0) {
    for (const item of items.slice(next, next + most - started.length)) {
      started.push(start(item).then((result) => [item, result] as const));
      next += 1;
    }
    const first = started.shift();
    if (first !== undefined) yield await first;
  }
}
