import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { constants, createGzip } from "node:zlib";
import type { Clock, Timer } from "../../runtime/clock.ts";
import type { LiveView } from "./live-view.ts";
import type { LiveMessage, PodRow } from "./model.ts";

// Updates are shown within a second.
const FLUSH_EVERY_MS = 200;
const ROWS_PER_MESSAGE = 1_000;
// The page notices within ten seconds that nothing comes. Proxies close silent connections after a minute.
const BEAT_EVERY_MS = 2_000;
const LIST_AGAIN_MS = 100;
// Rows are much alike: the fastest level leaves a ninth of them. Each message arrives at once.
const GZIP = { level: 1, flush: constants.Z_SYNC_FLUSH };

/** The parts of a live view that are sent. */
export type StreamedView = Pick<LiveView, "isComplete" | "rows" | "subscribe" | "silentMs">;

/** How a live view is sent. */
export interface StreamOptions {
  readonly clock: Clock;
  /** The browser takes gzip. */
  readonly isZipped: boolean;
}

/**
 * Sends a live view as server-sent events. A page that reads slowly gets each pod's latest row, so memory is bounded by the number
 * of pods.
 */
export class LiveStream {
  readonly #view: StreamedView;
  readonly #response: ServerResponse;
  readonly #isZipped: boolean;
  /** Takes the text of messages: the response, or what compresses for it. */
  readonly #sent: Writable;
  readonly #clock: Clock;
  readonly #changed = new Map<string, PodRow | undefined>();
  /** The latest message of each type that the page has not got yet. */
  readonly #latest = new Map<LiveMessage["type"], LiveMessage>();
  #timer: Timer | undefined;
  #beat: Timer | undefined;
  #isWriting = false;

  constructor(view: StreamedView, response: ServerResponse, { clock, isZipped }: StreamOptions) {
    this.#view = view;
    this.#response = response;
    this.#isZipped = isZipped;
    this.#sent = isZipped ? createGzip(GZIP) : response;
    this.#clock = clock;
  }

  /** Resolves when the page has closed the connection. */
  async run(hostName: string): Promise<void> {
    const response = this.#response;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      ...(this.#isZipped ? { "content-encoding": "gzip" } : {}),
    });
    if (this.#isZipped) this.#sent.pipe(response);
    const closed = once(response, "close");
    await this.#send({ type: "host", name: hostName });
    this.#sendBeat();
    const unsubscribe = this.#view.subscribe({
      onPod: (uid, row) => {
        this.#changed.set(uid, row);
        this.#schedule();
      },
      onNews: (message) => {
        this.#latest.set(message.type, message);
        this.#schedule();
      },
    });
    this.#isWriting = true;
    this.#sendAll().catch(() => response.destroy());
    await closed;
    unsubscribe();
    this.#timer?.cancel();
    this.#beat?.cancel();
    this.#sent.destroy();
  }

  /** Says when the host was last heard, also while nothing changes. A page that reads slowly gets fewer. */
  #sendBeat(): void {
    if (this.#response.destroyed) return;
    if (!this.#sent.writableNeedDrain) void this.#send({ type: "heard", silentMs: this.#view.silentMs });
    this.#beat = this.#clock.after(BEAT_EVERY_MS, () => this.#sendBeat());
  }

  async #sendAll(): Promise<void> {
    while (!this.#view.isComplete && !this.#response.destroyed) {
      this.#isWriting = false;
      await this.#flush();
      this.#isWriting = true;
      await new Promise<void>((resolve) => this.#clock.after(LIST_AGAIN_MS, resolve));
    }
    const rows = this.#view.rows();
    this.#changed.clear();
    for (let start = 0; start === 0 || start < rows.length; start += ROWS_PER_MESSAGE) {
      const part = rows.slice(start, start + ROWS_PER_MESSAGE);
      await this.#send({ type: "pods", isFirst: start === 0, rows: part, gone: [] });
    }
    await this.#send({ type: "complete" });
    this.#isWriting = false;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isWriting) return;
    this.#timer ??= this.#clock.after(FLUSH_EVERY_MS, () => {
      this.#timer = undefined;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    if (this.#isWriting || this.#response.destroyed) return;
    this.#isWriting = true;
    const messages = [...this.#latest.values()];
    this.#latest.clear();
    for (const message of messages) await this.#send(message);
    if (this.#changed.size > 0) {
      const rows = [...this.#changed.values()].filter((row) => row !== undefined);
      const gone = [...this.#changed].filter(([, row]) => row === undefined).map(([uid]) => uid);
      this.#changed.clear();
      await this.#send({ type: "pods", isFirst: false, rows, gone });
    }
    this.#isWriting = false;
    if (this.#changed.size + this.#latest.size > 0) this.#schedule();
  }

  async #send(message: LiveMessage): Promise<void> {
    const response = this.#response;
    if (response.destroyed || this.#sent.write(`data: ${JSON.stringify(message)}\n\n`)) return;
    await Promise.race([once(this.#sent, "drain"), once(response, "close")]);
  }
}
