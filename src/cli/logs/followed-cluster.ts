import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import type { Slots } from "../../kube/limits.ts";
import type { Selection } from "../../kube/list.ts";
import { jobs, pods } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import type { Reflector } from "../../runtime/reflector.ts";
import { waitFor } from "../shared/wait.ts";
import { chosenContainers, hasLog, logStateOf } from "./containers.ts";
import { LineReader } from "./lines.ts";
import { type LogOptions, type LogOutput, logsOf } from "./show.ts";
import { isRunOf, type LogSource, listPodsOf, named, podsOf, watched } from "./sources.ts";
import { type LogTarget, logTarget, openLog, readLog, type StreamEnd } from "./stream.ts";

export interface FollowedClusterContext extends LogOutput {
  /** Bounds the streams that are open at a time. */
  readonly streams: Slots;
}

interface FollowedLog extends LogTarget {
  readonly lines: LineReader;
  /** Lines of the past to begin with. Undefined, of a pod that started later: all. */
  readonly tail: number | undefined;
  /** Fires once the log does not grow: its stream is ended, and the rest is read anew. */
  readonly ended: AbortController;
}

const PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
// A followed stream whose container has ended and that has not ended is cut somewhere.
const ENDING_MS = 10_000;
// Time that the pods of a Job that is over have to end, and a member to answer.
const LAST_PODS_MS = 30_000;
const POLL_MS = 1_000;
const FINAL_ATTEMPTS = 5;

/** Follows the logs of pods in one cluster: those of a Job, or those that the user selects. */
export class FollowedCluster {
  readonly #source: LogSource;
  readonly #target: Stored<Job> | Selection;
  readonly #options: LogOptions;
  readonly #context: FollowedClusterContext;
  readonly #beganAt: number;
  readonly #stopped = new AbortController();
  readonly #signal: AbortSignal;
  #jobWatch: Reflector<Job> | undefined;
  /** The Job whose pods are watched: its copy in a member may be made anew. */
  #jobUid: string | undefined;
  #podWatch: Reflector<Pod> | undefined;
  readonly #pods = new Map<string, Stored<Pod>>();
  readonly #logs = new Map<string, FollowedLog>();
  readonly #reading = new Set<Promise<void>>();
  /** The Job has been over for so long that no log counts as growing, and each is read once more. */
  #isGivenUp = false;

  constructor(
    source: LogSource,
    target: Stored<Job> | Selection,
    options: LogOptions,
    context: FollowedClusterContext,
  ) {
    this.#source = source;
    this.#target = target;
    this.#options = options;
    this.#context = context;
    this.#beganAt = context.clock.now();
    this.#signal = AbortSignal.any([context.signal, this.#stopped.signal]);
  }

  /** Resolves once the selected pods were listed, or it is stopped. */
  async start(): Promise<void> {
    const target = this.#target;
    if (this.#signal.aborted) return;
    if ("metadata" in target) {
      this.#jobWatch = watched(this.#source, jobs, named(target), this.#context, ({ type, object }) => {
        if (type === "deleted" || !isRunOf(object, target) || this.#jobUid === object.metadata.uid) return;
        this.#jobUid = object.metadata.uid;
        this.#watchPods(podsOf(object));
      });
      return;
    }
    this.#watchPods(target);
    await this.#podWatch?.whenSynced(this.#signal).catch(() => undefined);
  }

  /** Resolves once every log is read to its end: of selected pods, or of the host's Job after it is over. */
  async finish(): Promise<void> {
    const { clock, gaps } = this.#context;
    const isOfJob = "metadata" in this.#target;
    if (isOfJob && !(await this.#seeLastPods(this.#target))) return;
    const giveUp = (): void => {
      this.#isGivenUp = true;
      for (const { ended } of this.#logs.values()) ended.abort();
    };
    if (isOfJob) clock.after(LAST_PODS_MS, giveUp);
    const mayGrow = (): boolean =>
      !isOfJob && !(this.#podWatch?.store.synced === true && [...this.#pods.values()].every(isTerminal));
    while (this.#reading.size > 0 || mayGrow()) await clock.sleep(POLL_MS, this.#signal);
    for (const pod of this.#pods.values()) logsOf(this.#source, pod, this.#options, gaps);
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Error("stopped"));
    await Promise.all([this.#jobWatch?.stop(), this.#podWatch?.stop(), ...this.#reading]);
  }

  /** Lists the pods of a Job that is over. Returns false if its cluster does not answer. */
  async #seeLastPods(job: Stored<Job>): Promise<boolean> {
    const { clock, gaps } = this.#context;
    const signal = this.#signal;
    let failure = "";
    const list = async (): Promise<readonly Stored<Pod>[] | undefined> => {
      try {
        return (await listPodsOf(this.#source, job, signal)) ?? [];
      } catch (error) {
        if (!isKubeError(error) || signal.aborted) throw error;
        failure = error.message;
        return undefined;
      }
    };
    const listed = await waitFor(list, { timeoutMs: LAST_PODS_MS, intervalMs: POLL_MS, signal, clock });
    if (listed === undefined) gaps.add(this.#source.name, `the ends of its logs are missing: ${failure}`);
    else {
      const uids = new Set(listed.map(({ metadata }) => metadata.uid));
      for (const pod of this.#pods.values()) if (!uids.has(pod.metadata.uid)) this.#see(pod, false);
      for (const pod of listed) this.#see(pod, true);
    }
    return listed !== undefined;
  }

  #watchPods(selection: Selection): void {
    if (this.#signal.aborted) return;
    void this.#podWatch?.stop();
    this.#podWatch = watched(this.#source, pods, selection, this.#context, ({ type, object }) =>
      this.#see(object, type !== "deleted"),
    );
  }

  #see(pod: Stored<Pod>, exists: boolean): void {
    const { uid } = pod.metadata;
    if (exists) this.#pods.set(uid, pod);
    else this.#pods.delete(uid);
    for (const container of chosenContainers(pod, this.#options)) {
      const key = `${uid}/${container}`;
      const log = this.#logs.get(key);
      if (log === undefined && exists && hasLog(pod, container)) this.#begin(key, pod, container);
      if (log === undefined || log.ended.signal.aborted || this.#grows(log)) continue;
      this.#context.clock.after(ENDING_MS, () => {
        if (!this.#grows(log)) log.ended.abort();
      });
    }
  }

  #grows({ pod, container, ended }: FollowedLog): boolean {
    const latest = this.#pods.get(pod.metadata.uid);
    return (
      !this.#isGivenUp && !ended.signal.aborted && latest !== undefined && logStateOf(latest, container) === "growing"
    );
  }

  #begin(key: string, pod: Stored<Pod>, container: string): void {
    const isNew = this.#podWatch?.store.synced === true;
    const log: FollowedLog = {
      ...logTarget(this.#source, pod, container, this.#options),
      tail: isNew ? undefined : this.#options.tail,
      lines: new LineReader(this.#options.timestamps ? "kept" : "removed"),
      ended: new AbortController(),
    };
    this.#logs.set(key, log);
    if ("metadata" in this.#target) this.#context.printer.follow(pod.metadata.uid);
    const reading = this.#read(log).finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }

  async #read(log: FollowedLog): Promise<void> {
    const { streams, gaps, clock } = this.#context;
    const { promise, resolve } = Promise.withResolvers<void>();
    // A group of its own for each log: first come, first served.
    const waiter = { namespace: log.name, granted: resolve };
    if (!streams.take(waiter)) {
      gaps.note("more containers run than are followed at a time: the others wait; see --max-log-requests");
      await promise;
    }
    let pauseMs = PAUSE_MS;
    let finalAttempts = 0;
    try {
      while (!this.#signal.aborted) {
        const before = log.lines.lastTime;
        const grows = this.#grows(log);
        const { end, message } = await this.#attempt(log, grows);
        if (this.#signal.aborted || end === "gone" || (!grows && end === "complete")) return;
        if (!grows) finalAttempts += 1;
        if (end === "forbidden" || finalAttempts === FINAL_ATTEMPTS || (!grows && this.#isGivenUp)) {
          gaps.add(log.name, message);
          return;
        }
        pauseMs = log.lines.lastTime === before ? Math.min(pauseMs * 2, LONGEST_PAUSE_MS) : PAUSE_MS;
        await clock.sleep(pauseMs, this.#signal).catch(() => undefined);
      }
    } finally {
      streams.release(waiter);
    }
  }

  async #attempt(log: FollowedLog, follow: boolean): Promise<StreamEnd> {
    const { printer, clock } = this.#context;
    const { lines } = log;
    const { sinceMs } = this.#options;
    const sinceSeconds = sinceMs === undefined ? undefined : Math.ceil((sinceMs + clock.now() - this.#beganAt) / 1000);
    const from = lines.lastTime === undefined ? { tailLines: log.tail, sinceSeconds } : { sinceTime: lines.lastTime };
    const signal = follow ? AbortSignal.any([this.#signal, log.ended.signal]) : this.#signal;
    const print = (line: Buffer): void => printer.print(log.name, line);
    lines.restart();
    const opened = await openLog(log, follow, { timestamps: true, ...from }, signal);
    if (!("body" in opened)) return opened;
    const ended = await readLog(opened.body, follow, (chunk) => lines.take(chunk).forEach(print));
    if (ended.end === "complete" && !follow) lines.end().forEach(print);
    return ended;
  }
}
