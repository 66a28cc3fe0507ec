import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { DeadlinePassed, ResponseTooLarge } from "../errors.ts";
import type { ByteBudget } from "../limits.ts";
import { startTimer } from "../timer.ts";
import { ByteBuffer } from "./byte-buffer.ts";
import { LineSplitter } from "./line-splitter.ts";
import type { ExchangeHandler } from "./request-sender.ts";

// Unread bytes beyond which the server has to wait, so that a slow consumer does not fill the heap.
const MOST_UNREAD_BYTES = 4 * 2 ** 20;
// Heap overhead of a line, an upper estimate (measured with Node.js 24).
const LINE_BYTES = 256;

// An object has 3 MiB at most in etcd, and somewhat more as JSON. No API server sends a longer line.
const MOST_LINE_BYTES = 16 * 2 ** 20;
// A Status, or an error page of a proxy in between.
const MOST_REFUSAL_BYTES = 2 ** 20;

/** The response to a watch request. `refusal` is the body of a response other than 200. */
export interface Opened {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly refusal?: string;
}

/** The error of a stream that ended before the server finished it. */
export class StreamCut extends Error {
  override readonly name = "StreamCut";
  /** The request was sent. */
  readonly sent: boolean;

  constructor(message: string, sent: boolean, cause?: unknown) {
    super(message, { cause });
    this.sent = sent;
  }
}

export interface StreamTimeouts {
  /** Milliseconds until the response must begin. */
  readonly openMs: number;
  /** Milliseconds of silence after which the connection counts as dead. */
  readonly idleMs: number;
}

/** The response to a watch request as batches of lines, for one consumer. */
export class WatchStream implements ExchangeHandler {
  readonly #opened = Promise.withResolvers<Opened>();
  readonly #timeouts: StreamTimeouts;
  readonly #budget: ByteBudget;
  readonly #splitter = new LineSplitter();
  readonly #refusal = new ByteBuffer();
  #controller: Dispatcher.DispatchController | undefined;
  #answer: Opened | undefined;
  #lines: Buffer[] = [];
  #unreadBytes = 0;
  #heldBytes = 0;
  #end: { readonly cut?: StreamCut } | undefined;
  #wake: (() => void) | undefined;
  #lastByteAt: number = performance.now();
  #timer: NodeJS.Timeout;

  /** Charges incomplete and unread lines to `budget`. */
  constructor(timeouts: StreamTimeouts, budget: ByteBudget) {
    this.#timeouts = timeouts;
    this.#budget = budget;
    const late = new DeadlinePassed(`no answer within ${timeouts.openMs} ms`);
    this.#timer = startTimer(timeouts.openMs, () => this.cancel(late.message, late));
    // A failure after the last waiter left must not become an unhandled rejection.
    this.#opened.promise.catch(() => {});
  }

  /** Resolves with the response. Rejects with StreamCut. */
  get opened(): Promise<Opened> {
    return this.#opened.promise;
  }

  /** Returns the next lines, one or more; undefined at the end of the stream. Rejects with StreamCut. */
  async take(): Promise<Buffer[] | undefined> {
    while (this.#lines.length === 0) {
      if (this.#end !== undefined) {
        if (this.#end.cut === undefined) return undefined;
        throw this.#end.cut;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const lines = this.#lines;
    this.#lines = [];
    this.#unreadBytes = 0;
    this.#hold();
    if (this.#controller?.paused === true && this.#end === undefined) {
      this.#lastByteAt = performance.now();
      this.#controller.resume();
    }
    return lines;
  }

  /** Ends the stream and closes its connection. Does nothing after its end. */
  cancel(reason: string, cause?: unknown): void {
    const cut = new StreamCut(reason, this.#controller !== undefined, cause);
    if (this.#finish(cut)) this.#controller?.abort(cut);
  }

  refuse(cause: Error): void {
    this.cancel(cause.message, cause);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#end !== undefined) controller.abort(this.#end.cut ?? new Error("cancelled"));
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#answer = { status, headers };
    if (status !== 200) return;
    clearTimeout(this.#timer);
    this.#lastByteAt = performance.now();
    this.#watchIdle(this.#timeouts.idleMs);
    this.#opened.resolve(this.#answer);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#end !== undefined) return;
    if (this.#answer?.status !== 200) {
      this.#refusal.add(chunk);
      if (this.#refusal.length > MOST_REFUSAL_BYTES) this.cancel(`a refusal of more than ${MOST_REFUSAL_BYTES} bytes`);
      return;
    }
    this.#lastByteAt = performance.now();
    this.#split(chunk);
    if (this.#splitter.pendingBytes > MOST_LINE_BYTES) {
      this.cancel(`an event of more than ${MOST_LINE_BYTES} bytes`);
      return;
    }
    if (!this.#hold()) {
      const cause = new ResponseTooLarge(this.#budget.most);
      this.cancel(cause.message, cause);
      return;
    }
    if (this.#lines.length === 0) return;
    if (this.#unreadBytes > MOST_UNREAD_BYTES) controller.pause();
    this.#wakeUp();
  }

  onResponseEnd(): void {
    const answer = this.#answer;
    if (answer !== undefined && answer.status !== 200) {
      this.#opened.resolve({ ...answer, refusal: this.#refusal.take().toString("utf8") });
    }
    const pending = this.#splitter.pendingBytes;
    this.#finish(
      pending === 0 ? undefined : new StreamCut(`the stream ended inside an event, after ${pending} bytes`, true),
    );
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    this.#finish(new StreamCut(cause.message, this.#controller !== undefined, cause));
  }

  #finish(cut: StreamCut | undefined): boolean {
    if (this.#end !== undefined) return false;
    clearTimeout(this.#timer);
    this.#end = cut === undefined ? {} : { cut };
    this.#hold();
    if (cut !== undefined) this.#opened.reject(cut);
    this.#wakeUp();
    return true;
  }

  #split(chunk: Buffer): void {
    const known = this.#lines.length;
    this.#splitter.push(chunk, this.#lines);
    for (const line of this.#lines.slice(known)) this.#unreadBytes += line.length + LINE_BYTES;
  }

  /** Charges the current bytes. Returns false when they exceed the budget. An ended stream holds none. */
  #hold(): boolean {
    const bytes = this.#end === undefined ? this.#splitter.pendingBytes + this.#unreadBytes : 0;
    if (!this.#budget.hold(bytes - this.#heldBytes)) return false;
    this.#heldBytes = bytes;
    return true;
  }

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Checks for idleness with one timer per stream instead of one per chunk. */
  #watchIdle(ms: number): void {
    this.#timer = startTimer(ms, () => {
      const silentMs = performance.now() - this.#lastByteAt;
      const paused = this.#controller?.paused === true;
      if (!paused && silentMs >= this.#timeouts.idleMs) this.cancel(`silent for ${Math.round(silentMs)} ms`);
      else this.#watchIdle(paused ? this.#timeouts.idleMs : this.#timeouts.idleMs - silentMs + 1);
    });
  }
}
