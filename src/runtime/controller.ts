import { AsyncLocalStorage } from "node:async_hooks";
import { isKubeError } from "../kube/errors.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { QueueLoad, QueueMetrics, WorkqueueMetrics } from "../telemetry/workqueue.ts";
import { Backoff } from "./backoff.ts";
import type { Clock, Timer } from "./clock.ts";
import { countDone, WorkQueue } from "./internal/work-queue.ts";
import type { Decision } from "./requeue.ts";

/** An expectation: reports whether the stores show a write. Until they do, the key is not reconciled again. */
export type Expectation<Observed> = (observed: Observed) => boolean;

export interface ActionContext<Key> {
  readonly key: Key;
  readonly signal: AbortSignal;
  /** When the first event that this reconcile answers arrived; epoch ms. */
  readonly heardAt: number;
  /** Adds the object and the reconcile id to every line. */
  readonly log: Logger;
}

/** The parts of a controller: it reads, decides and carries out; `Controller` owns the rest. */
export interface ControllerSpec<Key extends string, Observed, Action> {
  readonly name: string;
  /** Longest pause after failures; default 30 s. */
  readonly maxBackoffMs?: number;
  /** Synchronous. Returns undefined when nothing of the key is left. */
  observe(key: Key): Observed | undefined;
  /** Returns further fields for every log line of a reconcile. */
  identify?(observed: Observed): Readonly<Record<string, string>>;
  /** Decides, without I/O. `now` is monotonic, for durations; `wall` is the machine's time, for timestamps in objects. */
  decide(observed: Observed, now: number, wall: number): Decision<Action>;
  execute(action: Action, context: ActionContext<Key>): Promise<Expectation<Observed> | undefined>;
  /** Reports whether an action is executed although an earlier one failed. Default: none is. */
  standsAlone?(action: Action): boolean;
  /** Reports whether `interrupt` aborts an action's requests. Default: none's. */
  mayInterrupt?(action: Action): boolean;
}

export interface ControllerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: { readonly queues: Pick<WorkqueueMetrics, "of"> };
}

// An expectation that the watch has not met after this long expires: the stores decide as they are.
const EXPECTATION_TIMEOUT_MS = 10_000;
const MAX_BACKOFF_MS = 30_000;
// An event shortens a failing key's backoff to this at least: the failing write may itself cause the events.
const DIRTY_PERIOD_MS = 1_000;
// A cluster that answers does so by then; an aborted request costs its connection.
const INTERRUPT_MS = 100;
// Another client changed the object between its read and its write: the next attempt, or the one after, has its newest version.
const USUAL_CONFLICTS = 2;
// Keys reconciled before the event loop runs other callbacks (responses, watch lines).
const KEYS_PER_TURN = 20;

interface KeyState<Observed> {
  runningSince: number | undefined;
  /** Aborts the requests of the running reconcile. */
  interruption: AbortController | undefined;
  /** The running action's requests may be aborted. */
  interruptible: boolean;
  /** When the key was first enqueued again while its reconcile ran. */
  dirtySince: number | undefined;
  /** When the oldest unanswered event arrived; kept across failures and open expectations. */
  heardAt: number | undefined;
  awaiting: { readonly expectation: Expectation<Observed>; readonly until: number } | undefined;
  timer: Timer | undefined;
  backoff: Backoff | undefined;
}

/** Runs one reconcile per key at a time and any number of keys at once: no slow cluster holds up another's keys. */
export class Controller<Key extends string, Observed, Action> {
  readonly #spec: ControllerSpec<Key, Observed, Action>;
  readonly #metrics: QueueMetrics | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #keys = new Map<Key, KeyState<Observed>>();
  readonly #ready = new WorkQueue<Key>();
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<void>>();
  /** Runs outside any key's async context, so that one object's trace never contains another object's spans. */
  readonly #turn = AsyncLocalStorage.bind(() => {
    this.#drainPlanned = false;
    this.#drain();
  });
  #drainPlanned = false;
  #reconciles = 0;

  constructor(spec: ControllerSpec<Key, Observed, Action>, options: ControllerOptions) {
    this.#spec = spec;
    this.#clock = options.clock;
    this.#log = options.log.child({ controller: spec.name });
    this.#metrics = options.metrics?.queues.of(spec.name, () => this.#load());
  }

  /** Enqueues the key. Calls before the reconcile starts coalesce into one. */
  enqueue(key: Key): void {
    if (this.#abort.signal.aborted) return;
    const state = this.#keys.get(key);
    if (state?.runningSince !== undefined) {
      state.dirtySince ??= this.#clock.now();
      return;
    }
    this.#add(key, this.#clock.now());
  }

  /** Calls `done` once all keys were reconciled, with the ms that those without an event kept the process busy. */
  enqueueBehind(keys: Iterable<Key>, done: (busyMs: number) => void): void {
    if (this.#abort.signal.aborted) return;
    const now = this.#clock.now();
    // The extra one is this method's own, so that the batch cannot end before all keys are added.
    const batch = { left: 1, busyMs: 0, done };
    for (const key of keys) {
      const state = this.#keys.get(key);
      if (state?.runningSince !== undefined) state.dirtySince ??= now;
      else if (this.#ready.addBehind(key, now, batch)) this.#metrics?.added();
    }
    countDone(batch);
    if (this.#ready.size > 0) this.#planDrain();
  }

  /** Enqueues the key. If its reconcile soon still waits for an action that may be interrupted, aborts it. */
  interrupt(key: Key): void {
    this.enqueue(key);
    const state = this.#keys.get(key);
    const { interruption } = state ?? {};
    this.#clock.after(INTERRUPT_MS, () => {
      if (state?.interruptible === true && state.interruption === interruption) interruption?.abort();
    });
  }

  /** Reports whether the last reconcile of the key found an object. */
  knows(key: Key): boolean {
    return this.#keys.has(key);
  }

  /** Reports whether writes for the key are in flight. */
  isRunning(key: Key): boolean {
    return this.#keys.get(key)?.runningSince !== undefined;
  }

  /** Reports whether writes for the key are in flight, or not shown yet. */
  isWriting(key: Key): boolean {
    return this.isRunning(key) || this.#keys.get(key)?.awaiting !== undefined;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Enqueues the known keys that `concerns` accepts, including those whose object may be gone. */
  enqueueKnown(concerns: (key: Key) => boolean): void {
    for (const key of this.#keys.keys()) if (concerns(key)) this.enqueue(key);
  }

  /** Aborts requests in flight, and resolves when all reconciles have returned. */
  async stop(): Promise<void> {
    this.#abort.abort();
    this.#ready.clear();
    for (const state of this.#keys.values()) {
      state.timer?.cancel();
      state.interruption?.abort();
    }
    await Promise.all(this.#running);
    this.#keys.clear();
    this.#metrics?.ended();
  }

  #add(key: Key, heardAt: number): void {
    if (this.#ready.add(key, heardAt)) this.#metrics?.added();
    this.#planDrain();
  }

  #load(): QueueLoad {
    const now = this.#clock.now();
    const runningSeconds: number[] = [];
    for (const { runningSince } of this.#keys.values()) {
      if (runningSince !== undefined) runningSeconds.push((now - runningSince) / 1000);
    }
    return { depth: this.#ready.size, runningSeconds };
  }

  #planDrain(): void {
    if (this.#drainPlanned) return;
    this.#drainPlanned = true;
    setImmediate(this.#turn);
  }

  #drain(): void {
    for (let turn = 1; turn <= KEYS_PER_TURN; turn += 1) {
      // Each turn serves one low-priority key at least, so that they never starve.
      const taken = this.#ready.next(turn === KEYS_PER_TURN);
      if (taken === undefined) return;
      const begunAt = this.#clock.now();
      // Low-priority keys wait on purpose; their time would distort the queue-latency metric.
      if (taken.batch === undefined) this.#metrics?.taken((begunAt - taken.since) / 1000);
      this.#reconcile(taken.key, taken.since);
      if (taken.batch !== undefined) countDone(taken.batch, this.#clock.now() - begunAt);
    }
    if (this.#ready.size > 0) this.#planDrain();
  }

  /** Isolates a throwing `observe` or `decide` to its key: logs it, backs off, and lets other keys go on. */
  #reconcile(key: Key, readyAt: number): void {
    if (this.#abort.signal.aborted) return;
    try {
      this.#work(key, readyAt);
    } catch (error) {
      this.#log.error({ object: key, err: error }, "reconcile failed");
      this.#metrics?.retried();
      const state = this.#stateOf(key);
      this.#requeue(key, state, this.#backoffOf(state).next());
    }
  }

  #work(key: Key, readyAt: number): void {
    const running = this.#keys.get(key);
    // The key was enqueued between its `observe` and its first write.
    if (running?.runningSince !== undefined) {
      running.dirtySince ??= readyAt;
      return;
    }
    const observed = this.#spec.observe(key);
    if (observed === undefined) {
      this.#keys.get(key)?.timer?.cancel();
      this.#keys.delete(key);
      return;
    }
    const state = this.#stateOf(key);
    const now = this.#clock.now();
    state.timer?.cancel();
    state.timer = undefined;
    state.heardAt ??= readyAt;
    if (state.awaiting !== undefined) {
      if (!state.awaiting.expectation(observed) && now < state.awaiting.until) {
        this.#requeue(key, state, state.awaiting.until - now);
        return;
      }
      state.awaiting = undefined;
    }
    const reconcile = ++this.#reconciles;
    const decision = this.#spec.decide(observed, now, this.#clock.wall());
    if (decision.actions.length === 0) {
      state.backoff = undefined;
      state.heardAt = undefined;
      if (decision.requeueAt !== undefined) this.#requeue(key, state, decision.requeueAt - now);
      this.#metrics?.worked(decision.outcome, 0);
      return;
    }
    const interruption = new AbortController();
    state.interruption = interruption;
    const bindings = { object: key, ...this.#spec.identify?.(observed), reconcile };
    const context = contextOf(key, interruption.signal, state.heardAt, () => this.#log.child(bindings));
    state.runningSince = now;
    const run = this.#execute(state, decision, context);
    this.#running.add(run);
    void run.finally(() => this.#running.delete(run));
  }

  #stateOf(key: Key): KeyState<Observed> {
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    const state: KeyState<Observed> = {
      runningSince: undefined,
      interruption: undefined,
      interruptible: false,
      dirtySince: undefined,
      heardAt: undefined,
      awaiting: undefined,
      timer: undefined,
      backoff: undefined,
    };
    this.#keys.set(key, state);
    return state;
  }

  async #execute(state: KeyState<Observed>, decision: Decision<Action>, context: ActionContext<Key>): Promise<void> {
    const { key } = context;
    const started = this.#clock.now();
    let delayMs: number | undefined;
    let failed = false;
    try {
      let failure: { readonly error: unknown } | undefined;
      for (const action of decision.actions) {
        if (failure !== undefined && this.#spec.standsAlone?.(action) !== true) continue;
        let expectation: Expectation<Observed> | undefined;
        state.interruptible = this.#spec.mayInterrupt?.(action) === true;
        try {
          expectation = await this.#spec.execute(action, context);
        } catch (error) {
          failure ??= { error };
        }
        if (expectation === undefined) continue;
        const earlier = state.awaiting?.expectation;
        const all: Expectation<Observed> =
          earlier === undefined ? expectation : (observed) => earlier(observed) && expectation(observed);
        state.awaiting = { expectation: all, until: this.#clock.now() + EXPECTATION_TIMEOUT_MS };
      }
      if (failure !== undefined) throw failure.error;
      state.backoff = undefined;
      if (decision.requeueAt !== undefined) delayMs = decision.requeueAt - this.#clock.now();
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      if (!context.signal.aborted) {
        failed = true;
        delayMs = this.#failed(error, state, started, context);
      }
    } finally {
      state.runningSince = undefined;
      state.interruption = undefined;
    }
    const seconds = (this.#clock.now() - started) / 1000;
    if (this.#log.isLevelEnabled("debug")) {
      context.log.debug({ outcome: decision.outcome, actions: decision.actions.length, seconds }, "reconciled");
    }
    this.#metrics?.worked(decision.outcome, seconds);
    if (delayMs !== undefined) this.#requeue(key, state, delayMs);
    const { dirtySince } = state;
    state.dirtySince = undefined;
    if (failed) return;
    state.heardAt = undefined;
    // The view that led to these writes is stale now.
    if (dirtySince !== undefined || state.awaiting !== undefined) this.#add(key, dirtySince ?? this.#clock.now());
  }

  #failed(error: unknown, state: KeyState<Observed>, started: number, { log }: ActionContext<Key>): number {
    this.#metrics?.retried();
    const delayMs = this.#delayAfter(error, state, this.#clock.now() - started);
    if (isKubeError(error)) {
      const details = { code: error.code, cluster: error.cluster, delayMs: Math.round(delayMs) };
      const isUsual = error.code === "Conflict" && (state.backoff?.attempts ?? 0) <= USUAL_CONFLICTS;
      log[isUsual ? "debug" : "warn"](details, error.message);
    } else {
      log.error({ err: error, delayMs: Math.round(delayMs) }, "action failed");
    }
    return delayMs;
  }

  /** Returns the milliseconds until a reconcile that failed after `tookMs` is retried. */
  #delayAfter(error: unknown, state: KeyState<Observed>, tookMs: number): number {
    const backoffMs = this.#backoffOf(state).next();
    // The event may have removed the cause; if not, the backoff continues where it was.
    const sooner = state.dirtySince === undefined ? Number.POSITIVE_INFINITY : Math.max(0, DIRTY_PERIOD_MS - tookMs);
    return Math.max(Math.min(backoffMs, sooner), isKubeError(error) ? (error.retryAfterMs ?? 0) : 0);
  }

  #backoffOf(state: KeyState<Observed>): Backoff {
    state.backoff ??= new Backoff({ initialMs: 50, maxMs: this.#spec.maxBackoffMs ?? MAX_BACKOFF_MS });
    return state.backoff;
  }

  #requeue(key: Key, state: KeyState<Observed>, delayMs: number): void {
    state.timer?.cancel();
    state.timer = this.#clock.after(delayMs, () => this.enqueue(key));
  }
}

/** Returns a context that makes its logger on demand: most reconciles log nothing, and a child logger is dear. */
function contextOf<Key>(key: Key, signal: AbortSignal, heardAt: number, makeLog: () => Logger): ActionContext<Key> {
  let log: Logger | undefined;
  return {
    key,
    signal,
    heardAt,
    get log() {
      log ??= makeLog();
      return log;
    },
  };
}
