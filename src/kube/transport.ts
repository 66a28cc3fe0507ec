import { AbortCallbacks } from "./abort-callbacks.ts";
import type { ClusterCredentials, Identity } from "./credentials.ts";
import { KubeError, type KubeErrorCode, mayBeStarting } from "./errors.ts";
import { type Answer, Exchange, type Failure, type Outcome } from "./exchange.ts";
import { ByteBudget, type ClientLimits, Slots, TokenBucket, type Waiter } from "./limits.ts";
import { describeTarget } from "./paths.ts";
import { errorFromAnswer, type Subject } from "./status.ts";
import { Wire, type WireRequest } from "./wire.ts";

/** Told of every request once it ended, its retries included. */
export interface ClientMetrics {
  /** `result` is the HTTP status, or the error code when there was no answer. */
  observeRequest(cluster: string, verb: string, plural: string, result: string, seconds: number): void;
  /** A watch was accepted. */
  countWatch(cluster: string, plural: string): void;
  countWatchEvents(cluster: string, plural: string, events: number, bytes: number): void;
}

/** What a transport is made of. */
export interface TransportOptions {
  readonly cluster: string;
  readonly credentials: ClusterCredentials;
  readonly limits: ClientLimits;
  readonly userAgent: string;
  readonly metrics?: ClientMetrics | undefined;
  /** How long writes may still be on their way: what is left of the leader's lease. Undefined: as long as they like. */
  readonly leaseLeftMs?: (() => number | undefined) | undefined;
  readonly untrusted?: boolean | undefined;
}

// A read that found no connection is tried again this soon; a longer outage is the caller's backoff's business.
const RECONNECT_DELAYS_MS = [50, 250];
// What an untrusted server's answers on their way may hold together. A page of 500 pods has some 5 MB.
const MOST_UNTRUSTED_BYTES = 64 * 2 ** 20;
// Some tenths of a second after it listens, on an idle machine, an API server knows the roles (measured with 1.36).
const STARTING_DELAYS_MS = [100, 400, 1_500];

/** Sends requests to one API server within its limits and deadlines, and repeats only what is surely safe to repeat. */
export class Transport {
  readonly cluster: string;
  /** For what is not over with one answer. */
  readonly wire: Wire;
  readonly #options: TransportOptions;
  readonly #slots: Slots;
  readonly #aborts = new AbortCallbacks();
  readonly #bucket: TokenBucket;
  /** Ends the waits of requests that are between two attempts. */
  readonly #waking = new Set<() => void>();
  /** What its answers on their way hold. */
  readonly arriving: ByteBudget;

  constructor(options: TransportOptions) {
    this.cluster = options.cluster;
    this.wire = new Wire(options);
    this.#options = options;
    this.#slots = new Slots(options.limits.concurrency);
    this.arriving = new ByteBudget(options.untrusted === true ? MOST_UNTRUSTED_BYTES : Number.POSITIVE_INFINITY);
    this.#bucket = new TokenBucket(options.limits.perSecond, options.limits.burst, performance.now());
  }

  get timeoutMs(): number {
    return this.#options.limits.timeoutMs;
  }

  /** What it answers is checked before it is believed, and may only be so large. */
  get untrusted(): boolean {
    return this.#options.untrusted === true;
  }

  /** The 2xx answer to a request; rejects with KubeError. */
  async send(request: WireRequest): Promise<Answer> {
    const startedAt = performance.now();
    try {
      const answer = await this.#attempts(request, startedAt);
      this.#observe(request, String(answer.status), startedAt);
      return answer;
    } catch (error) {
      if (error instanceof KubeError) this.#observe(request, String(error.status ?? error.code), startedAt);
      throw error;
    }
  }

  /** How errors name the request. */
  subject(request: WireRequest): Subject {
    return {
      cluster: this.cluster,
      verb: request.verb,
      resource: describeTarget(request.plural, request.namespace, request.name),
    };
  }

  /**
   * The identity to send `request` with; rejects with KubeError: `BadCredentials`, or `NotSent` when a plugin takes longer for
   * it than the request has.
   */
  async identity(request: WireRequest, leftMs: number = this.timeoutMs): Promise<Identity> {
    try {
      const identity = this.#options.credentials.identity();
      return identity instanceof Promise ? await this.#inTime(identity, request, leftMs) : identity;
    } catch (cause) {
      if (cause instanceof KubeError && cause.code !== "BadCredentials") throw cause;
      const detail = cause instanceof KubeError ? `${cause.resource}: ${cause.detail}` : String(cause);
      throw this.error("BadCredentials", detail, request, cause);
    }
  }

  /** Forgets cached credentials after a 401. */
  refreshCredentials(): void {
    this.#options.credentials.refresh();
  }

  /** Waits for the token bucket; rejects with NotSent when the wait would be longer than `mostMs`. */
  async takeToken(request: WireRequest, mostMs: number): Promise<void> {
    const waitMs = this.#bucket.reserve(performance.now(), mostMs);
    if (waitMs === undefined) throw this.error("NotSent", "the client's request rate is used up", request);
    if (waitMs > 0) await this.#pause(waitMs, request);
  }

  error(code: KubeErrorCode, detail: string, request: WireRequest, cause?: unknown): KubeError {
    return new KubeError(detail, { ...this.subject(request), code, cause });
  }

  async close(): Promise<void> {
    const closed = this.wire.close();
    for (const wake of this.#waking) wake();
    await closed;
  }

  /** Notes that a watch was accepted. */
  watchOpened({ plural }: WireRequest): void {
    this.#options.metrics?.countWatch(this.cluster, plural);
  }

  /** Notes what a watch has brought. */
  watchBrought({ plural }: WireRequest, lines: readonly Buffer[]): void {
    const { metrics } = this.#options;
    if (metrics === undefined) return;
    const bytes = lines.reduce((sum, line) => sum + line.length, 0);
    metrics.countWatchEvents(this.cluster, plural, lines.length, bytes);
  }

  #observe(request: WireRequest, result: string, startedAt: number): void {
    this.#options.metrics?.observeRequest(
      this.cluster,
      request.verb,
      request.plural,
      result,
      (performance.now() - startedAt) / 1000,
    );
  }

  async #attempts(request: WireRequest, startedAt: number): Promise<Answer> {
    let endsAt = startedAt + (request.timeoutMs ?? this.#options.limits.timeoutMs);
    let reconnects = 0;
    let denials = 0;
    let refreshed = false;
    for (;;) {
      const leftMs = this.#timeLeft(request, endsAt);
      const { outcome, queuedMs } = await this.#attempt(request, leftMs);
      endsAt += queuedMs;
      const { answer } = outcome;
      if (answer === undefined) {
        const delayMs = isRead(request) && outcome.failure.by === "cut" ? RECONNECT_DELAYS_MS[reconnects] : undefined;
        if (delayMs === undefined || delayMs >= this.#timeLeft(request, endsAt)) {
          throw this.failure(outcome.failure, request);
        }
        reconnects += 1;
        await this.#pause(delayMs, request);
        continue;
      }
      if (answer.status >= 200 && answer.status < 300) return answer;
      const error = errorFromAnswer(answer, request.path, this.subject(request));
      if (answer.status === 401 && !refreshed) {
        // The server has refused before doing anything, so a second try is safe for writes too.
        refreshed = true;
        this.refreshCredentials();
        continue;
      }
      const delayMs = this.#delayAfter(error, request, denials);
      if (delayMs === undefined || delayMs >= endsAt - performance.now()) throw error;
      if (error.code === "Forbidden") denials += 1;
      await this.#pause(delayMs, request);
    }
  }

  /** Milliseconds after which a request that was refused is sent again; undefined when the refusal is the server's word. */
  #delayAfter(error: KubeError, request: WireRequest, denials: number): number | undefined {
    // As client-go: without Retry-After (an eviction that a PodDisruptionBudget holds up) it is the server's word.
    if (error.status === 429) return error.retryAfterMs === undefined ? undefined : Math.max(error.retryAfterMs, 1);
    // Reflectors list again anyway; for whoever asks once, a refusal is the server's word.
    return request.verb !== "list" && mayBeStarting(error) ? STARTING_DELAYS_MS[denials] : undefined;
  }

  /** Milliseconds until the request must be over; throws when it must not begin at all. */
  #timeLeft(request: WireRequest, endsAt: number): number {
    if (this.wire.closed) throw this.error("NotSent", "the client was closed", request);
    if (request.signal?.aborted === true)
      throw this.error("Aborted", "the caller gave up", request, request.signal.reason);
    const leftMs = endsAt - performance.now();
    if (leftMs <= 0) throw this.error("NotSent", "the deadline passed", request);
    const leaseLeftMs = isRead(request) ? undefined : this.#options.leaseLeftMs?.();
    if (leaseLeftMs === undefined) return leftMs;
    if (leaseLeftMs <= 0) throw this.error("NotSent", "the leader's lease is over: no more writes", request);
    return Math.min(leftMs, leaseLeftMs);
  }

  /** One try; `queuedMs` is how long it waited for a slot beyond the request's own time. */
  async #attempt(
    request: WireRequest,
    leftMs: number,
  ): Promise<{ readonly outcome: Outcome; readonly queuedMs: number }> {
    const startedAt = performance.now();
    if (request.outOfTurn !== true) await this.takeToken(request, leftMs);
    const endsAt = startedAt + leftMs;
    const identity = await this.identity(request, endsAt - performance.now());
    const slot = await this.#slot(request, endsAt);
    try {
      const exchangeMs = this.#timeLeft(request, endsAt + slot.queuedMs);
      return { outcome: await this.#exchange(request, identity, exchangeMs), queuedMs: slot.queuedMs };
    } finally {
      slot.release();
    }
  }

  /**
   * Waits for a slot. A queue says that this client is busy, not that the server is in trouble: the deadline of a request
   * that names none begins when it has left the queue. If it did not, a backlog longer than the deadline would make every
   * request fail that has waited for its turn, and the backlog would never get shorter.
   */
  async #slot(
    request: WireRequest,
    endsAt: number,
  ): Promise<{ readonly queuedMs: number; readonly release: () => void }> {
    if (request.outOfTurn === true) return { queuedMs: 0, release: () => undefined };
    const { signal, timeoutMs, namespace = "" } = request;
    const release = (): void => this.#slots.release({ namespace });
    const queueMs = timeoutMs === undefined ? this.#options.limits.queueTimeoutMs : endsAt - performance.now();
    const startedAt = performance.now();
    await new Promise<void>((resolve, reject) => {
      const settle = (end: () => void): void => {
        clearTimeout(timer);
        forget();
        end();
      };
      const waiter: Waiter = { namespace, granted: () => settle(resolve) };
      const giveUp = (error: KubeError): void => {
        if (this.#slots.leave(waiter)) settle(() => reject(error));
      };
      const onAbort = (): void => giveUp(this.error("Aborted", "the caller gave up", request, signal?.reason));
      const timer = setTimeout(
        () => giveUp(this.error("NotSent", `no free slot within ${Math.round(queueMs)} ms`, request)),
        queueMs,
      );
      const forget = this.#aborts.add(signal, onAbort);
      if (this.#slots.take(waiter)) settle(resolve);
    });
    return { queuedMs: timeoutMs === undefined ? performance.now() - startedAt : 0, release };
  }

  #exchange(request: WireRequest, identity: Identity, leftMs: number): Promise<Outcome> {
    const endsAt = performance.now() + leftMs;
    const { leaseLeftMs } = this.#options;
    // A paused process wakes with its timers late: the clock is asked again before the first byte.
    const mayStart = (): boolean =>
      performance.now() <= endsAt && (isRead(request) || (leaseLeftMs?.() ?? Number.POSITIVE_INFINITY) > 0);
    return new Promise((resolve) => {
      const exchange = new Exchange(mayStart, this.arriving, (outcome) => {
        clearTimeout(timer);
        clearImmediate(last);
        forget();
        resolve(outcome);
      });
      const onAbort = (): void =>
        exchange.end("aborted", new Error("the caller gave up", { cause: request.signal?.reason }));
      // What was meant, and not what the queue has left of it: the same failure has the same words each time.
      const allowedMs = request.timeoutMs ?? this.timeoutMs;
      const late = (): void => exchange.end("late", new Error(`no answer within ${Math.round(allowedMs)} ms`));
      let last: NodeJS.Immediate | undefined;
      // Timers come before sockets: in a process that has had no processor for a while, the answer may be there unread.
      const timer = setTimeout(() => {
        last = setImmediate(late);
      }, leftMs);
      const forget = this.#aborts.add(request.signal, onAbort);
      this.wire.send(request, identity, exchange);
    });
  }

  /** The error for an exchange without an answer; what does nothing by itself is harmless when it was sent. */
  failure(failure: Failure, request: WireRequest, isHarmless: boolean = isRead(request)): KubeError {
    const { message } = failure.cause;
    if (failure.by === "aborted" && (isHarmless || !failure.sent))
      return this.error("Aborted", message, request, failure.cause);
    return this.error(failure.sent ? "AnswerLost" : "NotSent", message, request, failure.cause);
  }

  #inTime<T>(promise: Promise<T>, request: WireRequest, leftMs: number): Promise<T> {
    const { signal } = request;
    return new Promise((resolve, reject) => {
      const settle = (end: () => void): void => {
        clearTimeout(timer);
        forget();
        end();
      };
      const giveUp = (code: "Aborted" | "NotSent", message: string): void =>
        settle(() => reject(this.error(code, message, request, signal?.reason)));
      const onAbort = (): void => giveUp("Aborted", "the caller gave up");
      const timer = setTimeout(
        () => giveUp("NotSent", `no credentials within ${Math.round(leftMs)} ms`),
        Math.max(0, leftMs),
      );
      const forget = this.#aborts.add(signal, onAbort);
      promise.then(
        (value) => settle(() => resolve(value)),
        (error: unknown) => settle(() => reject(error)),
      );
    });
  }

  #pause(ms: number, request: WireRequest): Promise<void> {
    const { signal } = request;
    return new Promise((resolve) => {
      // Whoever ends the wait, the next look at the time left says what follows.
      const wake = (): void => {
        clearTimeout(timer);
        this.#waking.delete(wake);
        forget();
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#waking.add(wake);
      const forget = this.#aborts.add(signal, wake);
    });
  }
}

function isRead({ method }: WireRequest): boolean {
  return method === "GET";
}
