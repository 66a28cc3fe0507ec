import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { ByteBuffer } from "./byte-buffer.ts";
import type { NoResponse, RequestEnd } from "./request-handler.ts";
import type { ExchangeHandler } from "./request-sender.ts";

export type StreamOutcome = RequestEnd | StreamBegun;

export interface StreamBegun {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  readonly body: Readable;
}

// Unread bytes of one stream, beyond which the server has to wait.
const UNREAD_BYTES = 64 * 1024;
// Longer than any `Status`; the rest is not read.
const MOST_REFUSAL_BYTES = 64 * 1024;

/** A response as a stream with backpressure, or as text when it is not a success. */
export class StreamHandler implements ExchangeHandler {
  readonly #settle: (outcome: StreamOutcome) => void;
  readonly #onConnected: () => void;
  readonly #isStream: (status: number) => boolean;
  #controller: Dispatcher.DispatchController | undefined;
  #ended: NoResponse | undefined;
  #settled = false;
  #complete = false;
  #body: Readable | undefined;
  /** The body's reader has consumed everything and waits. */
  #wanted = false;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  /** Unread bytes of the body, or the bytes of a refusal so far. */
  readonly #unread = new ByteBuffer();

  /** Takes `isStream` to say of which responses the body is read as a stream. */
  constructor(
    onConnected: () => void,
    settle: (outcome: StreamOutcome) => void,
    isStream: (status: number) => boolean = (status) => status >= 200 && status < 300,
  ) {
    this.#onConnected = onConnected;
    this.#isStream = isStream;
    this.#settle = settle;
  }

  end(by: NoResponse["by"], cause: Error): void {
    this.#fail({ sent: this.#controller !== undefined, by, cause });
    this.#body?.destroy(cause);
    this.#controller?.abort(cause);
  }

  refuse(cause: Error): void {
    this.end("cut", cause);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#onConnected();
    if (this.#ended === undefined) this.#controller = controller;
    else controller.abort(this.#ended.cause);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    this.#headers = headers;
    if (!this.#isStream(status) || this.#settled) return;
    this.#body = new Readable({
      // A larger buffer would keep chunks as they arrive, however small.
      highWaterMark: 1,
      read: () => this.#read(controller),
      destroy: (error, callback) => {
        if (!this.#complete) controller.abort(error ?? new Error("the reader has gone"));
        callback(error);
      },
    });
    // The body may have no reader yet, or no longer.
    this.#body.on("error", () => {});
    this.#settled = true;
    this.#settle({ status, headers, rawHeaders: rawHeadersOf(controller), body: this.#body });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#body === undefined) {
      this.#unread.add(chunk.subarray(0, MOST_REFUSAL_BYTES - this.#unread.length));
      return;
    }
    this.#unread.add(chunk);
    if (this.#wanted) this.#pass(this.#body);
    else if (this.#unread.length > UNREAD_BYTES) controller.pause();
  }

  onResponseEnd(): void {
    this.#complete = true;
    if (this.#body !== undefined) {
      this.#pass(this.#body);
      this.#body.push(null);
      return;
    }
    if (this.#settled) return;
    this.#settled = true;
    const text = this.#unread.take().toString("utf8");
    this.#settle({ answer: { status: this.#status, headers: this.#headers, text } });
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    this.#fail({ sent: this.#controller !== undefined, by: "cut", cause });
    this.#body?.destroy(cause);
  }

  #read(controller: Dispatcher.DispatchController): void {
    this.#wanted = true;
    if (this.#body !== undefined) this.#pass(this.#body);
    controller.resume();
  }

  #pass(body: Readable): void {
    if (this.#unread.length === 0) return;
    this.#wanted = false;
    body.push(this.#unread.take());
  }

  #fail(failure: NoResponse): void {
    this.#ended ??= failure;
    this.#onConnected();
    if (this.#settled) return;
    this.#settled = true;
    this.#settle({ failure });
  }
}

/** Returns the headers as they came: bytes, each as one character. */
function rawHeadersOf({ rawHeaders }: Dispatcher.DispatchController): string[] {
  if (!Array.isArray(rawHeaders)) return [];
  return rawHeaders.map((each) => (typeof each === "string" ? each : each.toString("latin1")));
}
