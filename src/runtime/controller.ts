import { AsyncLocalStorage } from "node:async_hooks";
import { isKubeError } from "../kube/errors.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { QueueLoad, QueueMetrics } from "../telemetry/workqueue.ts";
import { Backoff } from "./backoff.ts";
import type { Clock, Timer } from "./clock.ts";
import { had, KeyQueue } from "./key-queue.ts";

/** What one reconcile wants done. */
export interface Decision<Action> {
  /** Done in this order; the first that fails ends the reconcile. */
  readonly actions: readonly Action[];
  /** One word for logs and metrics. */
  readonly outcome: string;
  /** When to look again though nothing happened; epoch ms. */
  readonly requeueAt?: number;
}

/** Says whether the stores show a write; until they do, the key is not decided on again. */
export type Shown<Observed> = (observed: Observed) => boolean;

export interface ActionContext<Key> {
  readonly key: Key;
  readonly signal: AbortSignal;
  /** When what this reconcile answers was first heard of; epoch ms. */
  readonly heardAt: number;
  /** Names the object and the reconcile in every line. */
  readonly log: Logger;
}

/** The parts of one controller; only `execute` does I/O. */
export interface ControllerSpec<Key extends string, Observed, Action> {
  readonly name: string;
  /** Longest pause after failures; default 30 s. */
  readonly maxBackoffMs?: number;
  /** Synchronous reads from the stores; undefined when nothing of the key is left. */
  observe(key: Key): Observed | undefined;
  /** What else every line of log about a reconcile must say, e.g. the uid behind the key. */
  identify?(observed: Observed): Readonly<Record<string, string>>;
  /** `now` for durations; `wall` is the machine's time, for what others write or read. */
  decide(observed: Observed, now: number, wall: number): Decision<Action>;
  execute(action: Action, context: ActionContext<Key>): Promise<Shown<Observed> | undefined>;
  /** True for an action that is done though one before it has failed. Absent: none is. */
  standsAlone?(action: Action): boolean;
}

/** What every controller runs with. */
export interface ControllerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics?: Metrics;
}

// A write that the watch has not shown after this long is taken as lost sight of: decide from what is there.
const SHOWN_TIMEOUT_MS = 10_000;
const MAX_BACKOFF_MS = 30_000;
// For events that come while it fails, a key is not tried more often than this: what fails at once could bring them about.
const DIRTY_PERIOD_MS = 1_000;
// Keys handled before other work of the process (answers, watch lines) gets its turn.
const KEYS_PER_TURN = 20;

interface KeyState<Observed> {
  /** When the reconcile under way began. */
  runningSince: number | undefined;
  /** When it was first enqueued again while running. */
  dirtySince: number | undefined;
  /** When what is still to be answered was first heard of: a failure, or a write to be shown, came in between. */
  heardAt: number | undefined;
  awaiting: { readonly shown: Shown<Observed>; readonly until: number } | undefined;
  timer: Timer | undefined;
  backoff: Backoff | undefined;
}

/** Makes the logger when a line is written: most reconciles write none, and a child logger costs more than they do. */
class ReconcileContext<Key extends string> implements ActionContext<Key> {
  readonly key: Key;
  readonly signal: AbortSignal;
  readonly heardAt: number;
  readonly #log: Logger;
  readonly #bindings: Readonly<Record<string, unknown>>;
  #child: Logger | undefined;

  constructor(
    key: Key,
    options: {
      readonly signal: AbortSignal;
      readonly heardAt: number;
      readonly log: Logger;
      readonly bindings: Readonly<Record<string, unknown>>;
    },
  ) {
    this.key = key;
    this.signal = options.signal;
    this.heardAt = options.heardAt;
    this.#log = options.log;
    this.#bindings = options.bindings;
  }

  get log(): Logger {
    this.#child ??= this.#log.child({ object: this.key, ...this.#bindings });
    return this.#child;
  }
}

/**
 * Runs one reconcile per key at a time, and any number of keys at once: how much reaches a cluster is its client's
 * limit, so that keys waiting for a slow member never hold up keys of another.
 */
export class Controller<Key extends string, Observed, Action> {
  readonly #spec: ControllerSpec<Key, Observed, Action>;
  readonly #metrics: QueueMetrics | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #keys = new Map<Key, KeyState<Observed>>();
  readonly #ready = new KeyQueue<Key>();
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<void>>();
  /** In no key's context: what a trace tells of one pod must not hold what another's news led to. */
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

  /** Asks for a reconcile of the key; many before it runs are one. */
  enqueue(key: Key): void {
    if (this.#abort.signal.aborted) return;
    const state = this.#keys.get(key);
    if (state?.runningSince !== undefined) {
      state.dirtySince ??= this.#clock.now();
      return;
    }
    this.#add(key, this.#clock.now());
  }

  /**
   * Asks for reconciles of many keys, in this order, when nothing else waits. `done` hears how long they have kept the process
   * busy, in milliseconds, once all have had their turn; those that come to it by news of their own are not counted.
   */
  enqueueBehind(keys: Iterable<Key>, done: (busyMs: number) => void): void {
    if (this.#abort.signal.aborted) return;
    const now = this.#clock.now();
    // One for this method, so that it is not over before it is complete.
    const pass = { left: 1, busyMs: 0, done };
    for (const key of keys) {
      const state = this.#keys.get(key);
      if (state?.runningSince !== undefined) state.dirtySince ??= now;
      else if (this.#ready.addBehind(key, now, pass)) this.#metrics?.added();
    }
    had(pass);
    if (this.#ready.size > 0) this.#planDrain();
  }

  /** Whether something of the key was left when it was last looked at. */
  knows(key: Key): boolean {
    return this.#keys.has(key);
  }

  /** Asks for reconciles of those keys of which something is remembered here: what they stand for has gone, say. */
  enqueueKnown(concerns: (key: Key) => boolean): void {
    for (const key of this.#keys.keys()) if (concerns(key)) this.enqueue(key);
  }

  /** Starts nothing more, aborts what waits for an answer, and resolves when all reconciles have returned. */
  async stop(): Promise<void> {
    this.#abort.abort();
    this.#ready.clear();
    for (const state of this.#keys.values()) state.timer?.cancel();
    await Promise.all(this.#running);
    this.#keys.clear();
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
      // Of each turn one at least: what is behind the others comes to its end, too.
      const taken = this.#ready.next(turn === KEYS_PER_TURN);
      if (taken === undefined) return;
      const begunAt = this.#clock.now();
      // Who is behind the others waits on purpose: how long says nothing of the queue.
      if (taken.pass === undefined) this.#metrics?.taken((begunAt - taken.since) / 1000);
      this.#reconcile(taken.key, taken.since);
      if (taken.pass !== undefined) had(taken.pass, this.#clock.now() - begunAt);
    }
    if (this.#ready.size > 0) this.#planDrain();
  }

  /** A defect in what the controller does with one key is said once per attempt, and the other keys go on. */
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
    // It was asked for while it was looked at, before that had led to a write.
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
      if (!state.awaiting.shown(observed) && now < state.awaiting.until) {
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
    const context = new ReconcileContext(key, {
      signal: this.#abort.signal,
      heardAt: state.heardAt,
      log: this.#log,
      bindings: { ...this.#spec.identify?.(observed), reconcile },
    });
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
      dirtySince: undefined,
      heardAt: undefined,
      awaiting: undefined,
      timer: undefined,
      backoff: undefined,
    };
    this.#keys.set(key, state);
    return state;
  }

  async #execute(state: KeyState<Observed>, decision: Decision<Action>, context: ReconcileContext<Key>): Promise<void> {
    const { key } = context;
    const started = this.#clock.now();
    let delayMs: number | undefined;
    let failed = false;
    try {
      let failure: { readonly error: unknown } | undefined;
      for (const action of decision.actions) {
        if (failure !== undefined && this.#spec.standsAlone?.(action) !== true) continue;
        let shown: Shown<Observed> | undefined;
        try {
          shown = await this.#spec.execute(action, context);
        } catch (error) {
          failure ??= { error };
        }
        if (shown === undefined) continue;
        const earlier = state.awaiting?.shown;
        const all: Shown<Observed> = earlier === undefined ? shown : (observed) => earlier(observed) && shown(observed);
        state.awaiting = { shown: all, until: this.#clock.now() + SHOWN_TIMEOUT_MS };
      }
      if (failure !== undefined) throw failure.error;
      state.backoff = undefined;
      if (decision.requeueAt !== undefined) delayMs = decision.requeueAt - this.#clock.now();
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      failed = true;
      this.#metrics?.retried();
      delayMs = this.#delayAfter(error, state, this.#clock.now() - started);
      if (isKubeError(error)) {
        context.log.warn({ code: error.code, cluster: error.cluster, delayMs: Math.round(delayMs) }, error.message);
      } else {
        context.log.error({ err: error, delayMs: Math.round(delayMs) }, "action failed");
      }
    } finally {
      state.runningSince = undefined;
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
    // What was observed before the writes is old now.
    if (dirtySince !== undefined || state.awaiting !== undefined) this.#add(key, dirtySince ?? this.#clock.now());
  }

  /** Milliseconds until a reconcile that took `tookMs` and failed is made again. */
  #delayAfter(error: unknown, state: KeyState<Observed>, tookMs: number): number {
    const backoffMs = this.#backoffOf(state).next();
    // What failed may succeed after the event; if not, the backoff goes on where it was.
    const sooner = state.dirtySince === undefined ? Number.POSITIVE_INFINITY : Math.max(0, DIRTY_PERIOD_MS - tookMs);
    return Math.max(Math.min(backoffMs, sooner), isKubeError(error) ? (error.retryAfterMs ?? 0) : 0);
  }

  #backoffOf(state: KeyState<Observed>): Backoff {
    state.backoff ??= new Backoff({ initialMs: 50, maxMs: this.#spec.maxBackoffMs ?? MAX_BACKOFF_MS });
    return state.backoff;
  }

  #requeue(key: Key, state: KeyState<Observed>, delayMs: number): void {
    state.timer?.cancel();
    state.timer = this.#clock.after(Math.max(0, delayMs), () => this.enqueue(key));
  }
}
