import { onAbort } from "../abort.ts";
import type { ClientMetrics, Dial } from "../client.ts";
import type { ClusterCredentials, RequestIdentity } from "../credentials.ts";
import { DeadlinePassed, KubeError, type KubeErrorCode, mayBeStarting } from "../errors.ts";
import { ByteBudget, type ClientLimits, DEFAULT_LIMITS, Slots, TokenBucket } from "../limits.ts";
import { startTimer } from "../timer.ts";
import type { ServerConnections } from "./connections.ts";
import { type NoResponse, type RequestEnd, RequestHandler, type ServerAnswer } from "./request-handler.ts";
import { type ApiRequest, RequestSender } from "./request-sender.ts";
import { type ErrorSubject, errorFromAnswer } from "./status.ts";

/** The settings of a cluster's client. */
export interface ConnectOptions {
  /** The cluster's name in errors and metrics. */
  readonly cluster: string;
  readonly credentials: ClusterCredentials;
  readonly limits?: Partial<ClientLimits>;
  readonly userAgent?: string;
  readonly metrics?: ClientMetrics;
  /** Returns the rest of the leader's lease in ms, which limits every write. Undefined: no limit. */
  readonly leaseLeftMs?: () => number | undefined;
  /** The server is under foreign control: responses are validated and limited in size. */
  readonly untrusted?: boolean;
  /** Connections that are shared with other clients of the same API server. Undefined: its own. */
  readonly connections?: ServerConnections | undefined;
  /** Opens the connections; without it, the address of the credentials is connected to. */
  readonly dial?: Dial | undefined;
}

// Lists take turns with the namespaces of other requests. No namespace has such a name.
const LISTS = "/lists";
// Delays before a read without a connection is retried. The caller's backoff handles longer outages.
const RECONNECT_DELAYS_MS = [50, 250];
// Byte budget of an untrusted server's responses in flight. A page of 500 pods has about 5 MB.
const MOST_UNTRUSTED_BYTES = 64 * 2 ** 20;
// A response that arrives bit by bit takes this many deadlines at most: it holds a slot.
const LONGEST_ANSWER = 10;
// An API server's RBAC cache syncs a few tenths of a second after it listens, on an idle machine (measured with 1.36).
const STARTING_DELAYS_MS = [100, 400, 1_500];

/** Sends requests to one API server within its limits and deadlines. Retries only what is certainly safe to repeat. */
export class Transport {
  readonly cluster: string;
  readonly sender: RequestSender;
  readonly #options: ConnectOptions;
  readonly #limits: ClientLimits;
  readonly #slots: Slots;
  readonly #bucket: TokenBucket;
  /** Callbacks that end the waits between two attempts. */
  readonly #waking = new Set<() => void>();
  readonly arriving: ByteBudget;

  constructor(options: ConnectOptions) {
    const { cluster, credentials, dial, connections, userAgent = "kube-client" } = options;
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.cluster = cluster;
    this.sender = new RequestSender({ credentials, limits, dial }, userAgent, connections);
    this.#options = options;
    this.#limits = limits;
    this.#slots = new Slots(limits.concurrency);
    this.arriving = new ByteBudget(options.untrusted === true ? MOST_UNTRUSTED_BYTES : Number.POSITIVE_INFINITY);
    this.#bucket = new TokenBucket(limits.perSecond, limits.burst, performance.now());
  }

  get timeoutMs(): number {
    return this.#limits.timeoutMs;
  }

  /** Responses are validated and limited in size. */
  get untrusted(): boolean {
    return this.#options.untrusted === true;
  }

  /** Sends a request and returns its 2xx response. Rejects with KubeError. */
  async send(request: ApiRequest): Promise<ServerAnswer> {
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

  /** Returns what errors say of the request. */
  subject({ verb, plural, namespace, name }: ApiRequest): ErrorSubject {
    return { cluster: this.cluster, verb, resource: plural, namespace, objectName: name };
  }

  /** Returns the identity for `request`. Rejects with KubeError, `NotSent` when a plugin takes longer than it may. */
  async identity(request: ApiRequest, leftMs: number = this.timeoutMs): Promise<RequestIdentity> {
    try {
      const identity = this.#options.credentials.identity();
      return identity instanceof Promise ? await this.#inTime(identity, request, leftMs, "no credentials") : identity;
    } catch (cause) {
      if (cause instanceof KubeError && cause.code !== "BadCredentials") throw cause;
      const detail = cause instanceof KubeError ? `${cause.resource}: ${cause.detail}` : String(cause);
      throw this.error("BadCredentials", detail, request, cause);
    }
  }

  refreshCredentials(): void {
    this.#options.credentials.refresh();
  }

  /**
   * Opens a stream or an upgraded connection with `attempt`. Retries once with new credentials after a 401. Returns the stream
   * or connection, or the error response. Rejects with KubeError without a response.
   */
  async open<T>(
    request: ApiRequest,
    attempt: (identity: RequestIdentity) => Promise<RequestEnd | { readonly opened: T }>,
  ): Promise<T | ServerAnswer> {
    for (let refreshed = false; ; refreshed = true) {
      const outcome = await attempt(await this.identity(request));
      if ("opened" in outcome) return outcome.opened;
      const { answer, failure } = outcome;
      if (answer === undefined) throw this.failure(failure, request, true);
      if (answer.status !== 401 || refreshed) return answer;
      this.refreshCredentials();
    }
  }

  /** Waits for the rate limit. Rejects with NotSent when the wait would exceed `mostMs`. */
  async takeToken(request: ApiRequest, mostMs: number): Promise<void> {
    const waitMs = this.#bucket.reserve(performance.now(), mostMs);
    if (waitMs === undefined) throw this.error("NotSent", "the client's request rate is used up", request);
    if (waitMs > 0) await this.#pause(waitMs, request);
  }

  error(code: KubeErrorCode, detail: string, request: ApiRequest, cause?: unknown): KubeError {
    return new KubeError(detail, { ...this.subject(request), code, cause });
  }

  async close(): Promise<void> {
    const closed = this.sender.close();
    for (const wake of this.#waking) wake();
    await closed;
  }

  watchOpened({ plural }: ApiRequest): void {
    this.#options.metrics?.countWatch(this.cluster, plural);
  }

  watchBrought({ plural }: ApiRequest, lines: readonly Buffer[]): void {
    const { metrics } = this.#options;
    if (metrics === undefined) return;
    const bytes = lines.reduce((sum, line) => sum + line.length, 0);
    metrics.countWatchEvents(this.cluster, plural, lines.length, bytes);
  }

  #observe(request: ApiRequest, result: string, startedAt: number): void {
    const seconds = (performance.now() - startedAt) / 1000;
    this.#options.metrics?.observeRequest(this.cluster, request.verb, request.plural, result, seconds);
  }

  async #attempts(request: ApiRequest, startedAt: number): Promise<ServerAnswer> {
    let endsAt = startedAt + (request.timeoutMs ?? this.timeoutMs);
    let unconnected: NoResponse | undefined;
    let reconnects = 0;
    let denials = 0;
    let refreshed = false;
    for (;;) {
      const leftMs = this.#timeLeft(request, endsAt);
      const { outcome, queuedMs } = await this.#attempt(request, leftMs);
      endsAt += queuedMs;
      const { answer } = outcome;
      if (answer === undefined) {
        const { failure } = outcome;
        const delayMs = isRead(request) && failure.by === "cut" ? RECONNECT_DELAYS_MS[reconnects] : undefined;
        if (delayMs === undefined || delayMs >= this.#timeLeft(request, endsAt)) {
          // The reason why there is no connection says more than that time is up.
          const isUnsaid = failure.by === "late" && !failure.sent;
          throw this.failure(isUnsaid ? (unconnected ?? failure) : failure, request);
        }
        if (!failure.sent) unconnected = failure;
        reconnects += 1;
        await this.#pause(delayMs, request);
        continue;
      }
      if (answer.status >= 200 && answer.status < 300) return answer;
      const error = errorFromAnswer(answer, request.path, this.subject(request));
      if (answer.status === 401 && !refreshed) {
        // The server rejects credentials before it acts, so a retry is safe for writes as well.
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

  /** Returns the milliseconds until a refused request is sent again. Undefined when the refusal is final. */
  #delayAfter(error: KubeError, request: ApiRequest, denials: number): number | undefined {
    // As in client-go, a 429 without Retry-After is final (an eviction that a PodDisruptionBudget blocks).
    if (error.status === 429) return error.retryAfterMs === undefined ? undefined : Math.max(error.retryAfterMs, 1);
    // Reflectors retry lists themselves.
    return request.verb !== "list" && mayBeStarting(error) ? STARTING_DELAYS_MS[denials] : undefined;
  }

  /** Returns the milliseconds until the request's deadline. Throws when it must not start at all. */
  #timeLeft(request: ApiRequest, endsAt: number): number {
    if (this.sender.closed) throw this.error("NotSent", "the client was closed", request);
    if (request.signal?.aborted === true)
      throw this.error("Aborted", "the caller gave up", request, request.signal.reason);
    const leftMs = endsAt - performance.now();
    if (leftMs <= 0) throw this.error("NotSent", "the deadline passed", request);
    const leaseLeftMs = isRead(request) ? undefined : this.#options.leaseLeftMs?.();
    if (leaseLeftMs === undefined) return leftMs;
    if (leaseLeftMs <= 0) throw this.error("NotSent", "the leader's lease is over: no more writes", request);
    return Math.min(leftMs, leaseLeftMs);
  }

  /** Makes one attempt. `queuedMs` is the wait for a slot that does not count against the deadline. */
  async #attempt(
    request: ApiRequest,
    leftMs: number,
  ): Promise<{ readonly outcome: RequestEnd; readonly queuedMs: number }> {
    const startedAt = performance.now();
    if (request.outOfTurn !== true) await this.takeToken(request, leftMs);
    const endsAt = startedAt + leftMs;
    const identity = await this.identity(request, endsAt - performance.now());
    const slot = await this.#slot(request, endsAt);
    try {
      const leftForIt = this.#timeLeft(request, endsAt + slot.queuedMs);
      return { outcome: await this.#sendOnce(request, identity, leftForIt), queuedMs: slot.queuedMs };
    } finally {
      slot.release();
    }
  }

  /**
   * Waits for a slot. The default deadline starts only after the queue: a backlog longer than the deadline would otherwise
   * fail every request in its turn, and never shrink.
   */
  async #slot(
    request: ApiRequest,
    endsAt: number,
  ): Promise<{ readonly queuedMs: number; readonly release: () => void }> {
    if (request.outOfTurn === true) return { queuedMs: 0, release: () => undefined };
    const { timeoutMs } = request;
    // A list's next page would wait for all that a start writes.
    const namespace = request.verb === "list" ? LISTS : (request.namespace ?? "");
    const release = (): void => this.#slots.release({ namespace });
    const granted = Promise.withResolvers<void>();
    const waiter = { namespace, granted: granted.resolve };
    if (this.#slots.take(waiter)) return { queuedMs: 0, release };
    const startedAt = performance.now();
    const queueMs = timeoutMs === undefined ? this.#limits.queueTimeoutMs : endsAt - startedAt;
    try {
      await this.#inTime(granted.promise, request, queueMs, "no free slot");
    } catch (error) {
      // Otherwise the slot was granted at the same moment.
      if (this.#slots.leave(waiter)) throw error;
    }
    return { queuedMs: timeoutMs === undefined ? performance.now() - startedAt : 0, release };
  }

  #sendOnce(request: ApiRequest, identity: RequestIdentity, leftMs: number): Promise<RequestEnd> {
    const endsAt = performance.now() + leftMs;
    const { leaseLeftMs } = this.#options;
    // Timers of a paused process fire late, so the clock is read again before the first byte.
    const mayStart = (): boolean =>
      performance.now() <= endsAt && (isRead(request) || (leaseLeftMs?.() ?? Number.POSITIVE_INFINITY) > 0);
    return new Promise((resolve) => {
      const handler = new RequestHandler(mayStart, this.arriving, (outcome) => {
        clearTimeout(timer);
        clearImmediate(last);
        forget();
        resolve(outcome);
      });
      // The nominal deadline, not the rest after queueing, so that equal failures have equal messages.
      const allowedMs = request.timeoutMs ?? this.timeoutMs;
      const late = (): void => {
        const goesOnMs = this.#goesOnMs(request, handler, endsAt, allowedMs);
        if (goesOnMs > 0) {
          wait(goesOnMs);
          return;
        }
        const what = handler.heardAt === undefined ? "no answer" : "no whole answer";
        handler.end("late", new DeadlinePassed(`${what} within ${Math.round(allowedMs)} ms`));
      };
      let last: NodeJS.Immediate | undefined;
      let timer: NodeJS.Timeout;
      // Timers run before sockets: after a CPU starvation the response may have arrived unread.
      const wait = (ms: number): void => {
        timer = startTimer(ms, () => {
          last = setImmediate(late);
        });
      };
      wait(leftMs);
      const { signal } = request;
      const forget = onAbort(signal, () => handler.end("aborted", gaveUp(signal)));
      this.sender.send("requests", request, identity, handler);
    });
  }

  /** Returns for how long a response that is arriving may be silent now; ms. Zero or less: its time is up. */
  #goesOnMs(
    { mayGoOn }: ApiRequest,
    { heardAt }: Pick<RequestHandler, "heardAt">,
    endsAt: number,
    allowedMs: number,
  ): number {
    if (mayGoOn !== true || heardAt === undefined) return 0;
    const longest = endsAt + allowedMs * LONGEST_ANSWER;
    return Math.min(heardAt + allowedMs, longest) - performance.now();
  }

  /** Returns the error of an exchange without a response. `isHarmless`: repeating the request has no effect. */
  failure(failure: NoResponse, request: ApiRequest, isHarmless: boolean = isRead(request)): KubeError {
    const { message } = failure.cause;
    if (failure.by === "aborted" && (isHarmless || !failure.sent))
      return this.error("Aborted", message, request, failure.cause);
    return this.error(failure.sent ? "AnswerLost" : "NotSent", message, request, failure.cause);
  }

  /** Settles as `awaited` does, unless the caller gives up or the time passes first: `late` within so many ms. */
  async #inTime<T>(awaited: Promise<T>, request: ApiRequest, leftMs: number, late: string): Promise<T> {
    const { signal } = request;
    const over = Promise.withResolvers<never>();
    const giveUp = (code: "Aborted" | "NotSent", message: string): void =>
      over.reject(this.error(code, message, request, signal?.reason));
    const timer = startTimer(leftMs, () => giveUp("NotSent", `${late} within ${Math.round(leftMs)} ms`));
    const forget = onAbort(signal, () => giveUp("Aborted", "the caller gave up"));
    try {
      return await Promise.race([awaited, over.promise]);
    } finally {
      clearTimeout(timer);
      forget();
    }
  }

  #pause(ms: number, request: ApiRequest): Promise<void> {
    const { signal } = request;
    return new Promise((resolve) => {
      // Whatever ends the wait, the next check of the deadline decides what follows.
      const wake = (): void => {
        clearTimeout(timer);
        this.#waking.delete(wake);
        forget();
        resolve();
      };
      const timer = startTimer(ms, wake);
      this.#waking.add(wake);
      const forget = onAbort(signal, wake);
    });
  }
}

/** Returns the cause of the end of an exchange whose caller's signal has fired. */
export function gaveUp(signal: AbortSignal | undefined): Error {
  return new Error("the caller gave up", { cause: signal?.reason });
}

function isRead({ method }: ApiRequest): boolean {
  return method === "GET";
}
