import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { ResponseTooLarge } from "../errors.ts";
import type { ByteBudget } from "../limits.ts";
import { ByteBuffer } from "./byte-buffer.ts";
import type { ExchangeHandler } from "./request-sender.ts";

export interface ServerAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** The reason why a request got no response. */
export interface NoResponse {
  /** A byte of the request may have left. Otherwise the server has surely not seen it. */
  readonly sent: boolean;
  /** `cut`: the connection broke; `late`: a deadline passed; `aborted`: the caller aborted. */
  readonly by: "cut" | "late" | "aborted";
  readonly cause: Error;
}

export type RequestEnd =
  | { readonly answer: ServerAnswer; readonly failure?: never }
  | { readonly failure: NoResponse; readonly answer?: never };

/**
 * A request and its response on one connection. Uses undici's dispatch handler rather than `request`: it needs no stream
 * per response, and `onRequestStart`, called just before the first byte, separates "not sent" from "answer lost".
 */
export class RequestHandler implements ExchangeHandler {
  readonly #settle: (outcome: RequestEnd) => void;
  readonly #mayStart: () => boolean;
  readonly #budget: ByteBudget;
  readonly #body = new ByteBuffer();
  #controller: Dispatcher.DispatchController | undefined;
  #ended: NoResponse | undefined;
  #settled = false;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #heardAt: number | undefined;

  /** Asks `mayStart` just before the first byte. Calls `settle` exactly once. */
  constructor(mayStart: () => boolean, budget: ByteBudget, settle: (outcome: RequestEnd) => void) {
    this.#mayStart = mayStart;
    this.#budget = budget;
    this.#settle = settle;
  }

  /** When the last byte of the response came, by `performance.now()`. */
  get heardAt(): number | undefined {
    return this.#heardAt;
  }

  /** Ends the request. One in flight closes its connection. */
  end(by: "late" | "aborted", cause: Error): void {
    if (this.#settled) return;
    this.#fail({ sent: this.#controller !== undefined, by, cause });
    this.#controller?.abort(cause);
  }

  refuse(cause: Error): void {
    this.#fail({ sent: false, by: "cut", cause });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#ended !== undefined) {
      controller.abort(this.#ended.cause);
      return;
    }
    if (!this.#mayStart()) {
      const cause = new Error("the deadline passed before a connection was there");
      this.#fail({ sent: false, by: "late", cause });
      controller.abort(cause);
      return;
    }
    this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Called for informational (1xx) responses too, which precede the final one and have no body.
    this.#status = status;
    this.#headers = headers;
    this.#heardAt = performance.now();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return;
    if (!this.#budget.hold(chunk.length)) {
      const cause = new ResponseTooLarge(this.#budget.most);
      this.#fail({ sent: true, by: "cut", cause });
      controller.abort(cause);
      return;
    }
    this.#body.add(chunk);
    this.#heardAt = performance.now();
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#budget.hold(-this.#body.length);
    const text = this.#body.take().toString("utf8");
    this.#settle({ answer: { status: this.#status, headers: this.#headers, text } });
  }

  onResponseError(_controller: Dispatcher.DispatchController, cause: Error): void {
    this.#fail({ sent: this.#controller !== undefined, by: "cut", cause });
  }

  #fail(failure: NoResponse): void {
    this.#ended = failure;
    if (this.#settled) return;
    this.#settled = true;
    this.#budget.hold(-this.#body.length);
    this.#body.clear();
    this.#settle({ failure });
  }
}
