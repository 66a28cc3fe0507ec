import type { Job, Pod, Stored } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import { pods } from "../../kube/resources.ts";
import { isTerminal } from "../../pods/pod-state.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { SILENT_LOG } from "../../telemetry/silent-log.ts";
import { chosenContainers, type LogState, logStateOf } from "./containers.ts";
import { LineReader } from "./lines.ts";
import { type LogOptions, type LogOutput, logsOf, type NamedLog, namedLog } from "./show.ts";
import {
  findJobIn,
  isRunOf,
  type LogSource,
  listPodsOf,
  type PodSelection,
  podSelector,
  reflectorOfJob,
} from "./sources.ts";
import { openLog, readLog, type StreamEnd } from "./stream.ts";

/** A semaphore: at most so many streams at a time, first come, first served. */
export class StreamSlots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  get isFull(): boolean {
    return this.#free === 0;
  }

  async take(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

export interface FollowedClusterContext extends LogOutput {
  readonly places: StreamSlots;
  readonly onPod: (uid: string) => void;
}

interface FollowedLog extends NamedLog {
  readonly lines: LineReader;
  /** Lines of the past to begin with. Undefined, of a pod that started later: all. */
  readonly tail: number | undefined;
  /** Ends the present stream, if it follows the log. */
  attached: AbortController | undefined;
}

type Attempt = StreamEnd & { readonly printed: boolean };

const PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
// A followed stream whose container has ended and that has not ended is cut somewhere: the rest is read anew.
const ENDING_MS = 10_000;
// Time that the pods of a Job that is over have to end, and a member to answer. Streams of the rest are ended.
const LAST_PODS_MS = 30_000;
const LAST_PODS_POLL_MS = 1_000;
const ENDED_PODS_POLL_MS = 20_000;
const FINAL_ATTEMPTS = 5;

/** Follows the logs of pods in one cluster: those of a Job, or those that the user selects. */
export class FollowedCluster {
  readonly #source: LogSource;
  readonly #target: Stored<Job> | PodSelection;
  readonly #options: LogOptions;
  readonly #context: FollowedClusterContext;
  readonly #beganAt: number;
  readonly #stopped = new AbortController();
  readonly #signal: AbortSignal;
  /** Watches the Job. Undefined for selected pods. */
  readonly #runs: Reflector<Job> | undefined;
  #podWatch: { readonly jobUid: string | undefined; readonly reflector: Reflector<Pod> } | undefined;
  readonly #pods = new Map<string, Stored<Pod>>();
  readonly #logs = new Map<string, FollowedLog>();
  readonly #reading = new Set<Promise<void>>();
  /** No log grows any more, whatever the pods' states say. */
  #isGivenUp = false;

  constructor(
    source: LogSource,
    target: Stored<Job> | PodSelection,
    options: LogOptions,
    context: FollowedClusterContext,
  ) {
    const { clock, signal } = context;
    this.#source = source;
    this.#target = target;
    this.#options = options;
    this.#context = context;
    this.#beganAt = clock.now();
    this.#signal = AbortSignal.any([signal, this.#stopped.signal]);
    if (!("metadata" in target)) return;
    const runs: Reflector<Job> = reflectorOfJob(source, target, {
      clock,
      onEvent: ({ type, object }) => {
        if (type !== "deleted" && isRunOf(object, target)) this.#watchPodsOf(object);
      },
      onState: () => this.#tellFailure(runs),
    });
    this.#runs = runs;
  }

  /** Resolves once the selected pods were listed, or it is stopped. */
  async start(): Promise<void> {
    if (this.#signal.aborted) return;
    if (!("metadata" in this.#target)) this.#watchPods(this.#target, undefined);
    this.#runs?.start();
    await this.#podWatch?.reflector.whenSynced(this.#signal).catch(() => undefined);
  }

  /** Resolves once every log is read to its end: of selected pods, or of the host's Job after it is over. */
  async finish(): Promise<void> {
    if ("metadata" in this.#target) await this.#finishJob(this.#target);
    else await this.#finishSelected();
  }

  async #finishSelected(): Promise<void> {
    const { clock, gaps } = this.#context;
    const isOver = (): boolean =>
      this.#podWatch?.reflector.store.synced === true &&
      this.#reading.size === 0 &&
      [...this.#pods.values()].every(isTerminal);
    while (!isOver()) await clock.sleep(LAST_PODS_POLL_MS, this.#signal);
    for (const pod of this.#pods.values()) logsOf(this.#source, pod, this.#options, gaps);
  }

  async #finishJob(job: Stored<Job>): Promise<void> {
    const { clock, gaps } = this.#context;
    const overSince = clock.now();
    let failingSince: number | undefined;
    for (;;) {
      const now = clock.now();
      if (now - overSince >= LAST_PODS_MS) this.#giveUp();
      let haveEnded = false;
      try {
        const found = await findJobIn(this.#source, job, this.#signal);
        const listed = found === undefined ? [] : await listPodsOf(this.#source, found, this.#signal);
        failingSince = undefined;
        this.#replace(listed);
        haveEnded = listed.every(isTerminal);
        if (this.#reading.size === 0) {
          for (const pod of listed) logsOf(this.#source, pod, this.#options, gaps);
          return;
        }
      } catch (error) {
        if (!isKubeError(error) || this.#signal.aborted) throw error;
        failingSince ??= now;
        if (now - failingSince >= LAST_PODS_MS) {
          gaps.add(this.#source.name, `the ends of its logs are missing: ${error.message}`);
          return;
        }
      }
      // Ended pods are listed again only to learn whether the member still answers.
      const pause = clock.sleep(haveEnded ? ENDED_PODS_POLL_MS : LAST_PODS_POLL_MS, this.#signal);
      await (haveEnded ? Promise.race([pause, Promise.all(this.#reading)]) : pause);
    }
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Error("stopped"));
    await Promise.all([this.#runs?.stop(), this.#podWatch?.reflector.stop(), ...this.#reading]);
  }

  #watchPodsOf(run: Stored<Job>): void {
    const { uid, namespace = "" } = run.metadata;
    if (this.#podWatch?.jobUid === uid || this.#signal.aborted) return;
    this.#watchPods({ namespace, labelSelector: podSelector(run) }, uid);
  }

  #watchPods(selection: PodSelection, jobUid: string | undefined): void {
    void this.#podWatch?.reflector.stop();
    const reflector: Reflector<Pod> = new Reflector({
      client: this.#source.client,
      resource: pods,
      ...selection,
      clock: this.#context.clock,
      // `Gaps` tells the user of failures.
      log: SILENT_LOG,
      onEvent: ({ type, object }) => {
        if (type === "deleted") this.#forget(object);
        else this.#see(object);
      },
      onState: () => this.#tellFailure(reflector),
    });
    this.#podWatch = { jobUid, reflector };
    reflector.start();
  }

  #tellFailure({ failing }: Reflector<Job> | Reflector<Pod>): void {
    if (failing === undefined) return;
    this.#context.gaps.note(`${this.#source.name} does not answer, and is asked again: ${failing.reason}`);
  }

  #replace(listed: readonly Stored<Pod>[]): void {
    const uids = new Set(listed.map(({ metadata }) => metadata.uid));
    for (const pod of this.#pods.values()) if (!uids.has(pod.metadata.uid)) this.#forget(pod);
    for (const pod of listed) this.#see(pod);
  }

  #see(pod: Stored<Pod>): void {
    const { uid } = pod.metadata;
    if (!this.#pods.has(uid)) this.#context.onPod(uid);
    this.#pods.set(uid, pod);
    for (const container of chosenContainers(pod, this.#options)) {
      const key = `${uid}/${container}`;
      const log = this.#logs.get(key);
      const state = logStateOf(pod, container);
      if (log !== undefined) this.#endSoon(log);
      else if (state === "growing" || state === "complete") this.#begin(key, pod, container);
    }
  }

  #forget({ metadata }: Stored<Pod>): void {
    this.#pods.delete(metadata.uid);
    for (const log of this.#logs.values()) if (log.pod.metadata.uid === metadata.uid) this.#endSoon(log);
  }

  #begin(key: string, pod: Stored<Pod>, container: string): void {
    const isNew = this.#podWatch?.reflector.store.synced === true;
    const log: FollowedLog = {
      ...namedLog({ source: this.#source, pod, container }, this.#options),
      tail: isNew ? undefined : this.#options.tail,
      lines: new LineReader(this.#options.timestamps ? "kept" : "removed"),
      attached: undefined,
    };
    this.#logs.set(key, log);
    const reading = this.#read(log).finally(() => this.#reading.delete(reading));
    this.#reading.add(reading);
  }

  async #read(log: FollowedLog): Promise<void> {
    const { places, gaps, clock } = this.#context;
    if (places.isFull)
      gaps.note("more containers run than are followed at a time: the others wait; see --max-log-requests");
    await places.take();
    let pauseMs = PAUSE_MS;
    let finalAttempts = 0;
    try {
      while (!this.#signal.aborted) {
        const isFinal = this.#stateOf(log) !== "growing";
        const attempt = await this.#attempt(log, !isFinal);
        if (this.#signal.aborted || attempt.end === "gone" || (isFinal && attempt.end === "complete")) return;
        if (isFinal) finalAttempts += 1;
        const isForbidden = attempt.end === "refused" && attempt.status === 403;
        if (isForbidden || finalAttempts === FINAL_ATTEMPTS) {
          gaps.add(log.name, "message" in attempt ? attempt.message : "the log has no end");
          return;
        }
        pauseMs = attempt.printed ? PAUSE_MS : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
        await clock.sleep(pauseMs, this.#signal).catch(() => undefined);
      }
    } finally {
      places.release();
    }
  }

  async #attempt(log: FollowedLog, follow: boolean): Promise<Attempt> {
    const { printer, clock } = this.#context;
    const { lines } = log;
    const attached = new AbortController();
    const signal = AbortSignal.any([this.#signal, attached.signal]);
    if (follow) log.attached = attached;
    const { sinceMs } = this.#options;
    const sinceSeconds = sinceMs === undefined ? undefined : Math.ceil((sinceMs + clock.now() - this.#beganAt) / 1000);
    const from = lines.lastTime === undefined ? { tail: log.tail, sinceSeconds } : { sinceTime: lines.lastTime };
    let printed = false;
    const print = (line: Buffer): void => {
      printed = true;
      printer.print(log.name, line);
    };
    lines.restart();
    try {
      const opened = await openLog(log, { follow, timestamps: true, ...from }, signal);
      if (!("body" in opened)) return { ...opened, printed };
      const end = await readLog(opened.body, { follow, signal }, (chunk) => lines.take(chunk).forEach(print));
      if (end.end === "complete" && !follow) lines.end().forEach(print);
      return { ...end, printed };
    } finally {
      log.attached = undefined;
    }
  }

  #stateOf({ pod, container }: FollowedLog): LogState {
    const latest = this.#pods.get(pod.metadata.uid);
    return latest === undefined || this.#isGivenUp ? "complete" : logStateOf(latest, container);
  }

  #endSoon(log: FollowedLog): void {
    const { attached } = log;
    if (attached === undefined || this.#stateOf(log) === "growing") return;
    this.#context.clock.after(ENDING_MS, () => attached.abort());
  }

  /** Ends the streams of logs that grow, to read each once more. */
  #giveUp(): void {
    if (this.#isGivenUp) return;
    this.#isGivenUp = true;
    for (const { attached } of this.#logs.values()) attached?.abort();
  }
}
