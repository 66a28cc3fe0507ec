import type { Readable } from "node:stream";
import { DELEGATE_UID_ANNOTATION } from "../../api/keys.ts";
import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { Selection } from "../../kube/list.ts";
import { memberOf } from "../../pods/proxy.ts";
import type { Clock } from "../../runtime/clock.ts";
import { fanOut } from "../multicluster/fan-out.ts";
import type { Gaps } from "../shared/gaps.ts";
import { type ContainerChoice, chosenContainers, containerNames, hasLog, whyNoLog } from "./containers.ts";
import { type LinePrinter, LineReader } from "./lines.ts";
import { type LogSource, listPodsOf, listSelected, logName, named } from "./sources.ts";
import { type LogTarget, logTarget, openLog, readLog, type StreamEnd } from "./stream.ts";

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
  const query = { timestamps: options.timestamps || undefined, tailLines: options.tail, sinceSeconds };
  const lost = new Set<LogSource>();
  const open = async (log: LogTarget | undefined): Promise<{ readonly body: Readable } | StreamEnd | undefined> =>
    log === undefined || lost.has(log.source) ? undefined : openLog(log, false, query, signal);
  const opening = logs.slice(0, STREAMS).map(open);
  for (const [index, log] of logs.entries()) {
    const opened = await opening.shift();
    signal.throwIfAborted();
    if (opened !== undefined && "body" in opened) {
      const lines = new LineReader("absent");
      const print = (line: Buffer): void => printer.print(log.name, line);
      const { end, message } = await readLog(opened.body, false, (chunk) => lines.take(chunk).forEach(print));
      lines.end().forEach(print);
      signal.throwIfAborted();
      if (end === "cut") gaps.add(log.name, `the log was cut: ${message}`);
    } else if (opened?.end === "cut") {
      lost.add(log.source);
      const missing = `the logs of its pods from ${log.name} on are missing`;
      gaps.add(log.source.name, `does not answer, so ${missing}: ${opened.message}`);
    } else if (opened?.end === "gone") gaps.note(`${log.name}: the pod is gone`);
    else if (opened !== undefined) gaps.add(log.name, opened.message);
    opening.push(open(logs[index + STREAMS]));
  }
}

/** Returns the logs of a pod that exist. Tells why the others do not. */
export function logsOf(source: LogSource, pod: Stored<Pod>, choice: ContainerChoice, gaps: Gaps): LogTarget[] {
  const chosen = chosenContainers(pod, choice);
  const podName = logName(source, pod);
  if (chosen.length === 0 && choice.container !== undefined) {
    gaps.add(podName, `has no container ${choice.container}; it has ${containerNames(pod).join(", ")}`);
  }
  return chosen.flatMap((container) => {
    if (hasLog(pod, container)) return [logTarget(source, pod, container, choice)];
    gaps.note(`${podName}: container ${container} ${whyNoLog(pod, container)}`);
    return [];
  });
}

/** Finds the pods of a Job in all its clusters. Tells of what fails. */
export function podsOfJob(
  job: Stored<Job>,
  sources: readonly LogSource[],
  output: LogOutput,
): Promise<readonly FoundPod[]> {
  return findPods(sources, output, async (source) => {
    const found = await listPodsOf(source, job, output.signal);
    const remedy = "it is not there yet, or the kubeconfig is of another cluster";
    if (found === undefined) output.gaps.add(source.name, "has no copy of this Job", remedy);
    return found ?? [];
  });
}

export function selectedPods(
  selection: Selection,
  sources: readonly LogSource[],
  output: LogOutput,
): Promise<readonly FoundPod[]> {
  return findPods(sources, output, (source) => listSelected(source, selection, output.signal));
}

async function findPods(
  sources: readonly LogSource[],
  { clock, gaps, signal }: LogOutput,
  list: (source: LogSource) => Promise<readonly Stored<Pod>[]>,
): Promise<readonly FoundPod[]> {
  const found = fanOut(sources, clock, async (source) => {
    try {
      return (await list(source)).map((pod) => ({ source, pod }));
    } catch (error) {
      if (!isKubeError(error) || signal.aborted) throw error;
      gaps.add(source.name, error.message);
      return [];
    }
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
  const isOwn = !choice.all && (choice.container === undefined || chosenContainers(pod, choice).length > 0);
  if (isOwn || member === undefined || delegateUid === undefined) return { source: host, pod };
  const found = await selectedPods(named(pod), [await open(member)], output);
  const delegate = found.find((each) => each.pod.metadata.uid === delegateUid);
  if (delegate === undefined && !output.gaps.lacking.includes(member)) {
    output.gaps.add(`${member}/${pod.metadata.name}`, "the pod has no delegate there any more");
  }
  return delegate;
}
