import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { constants, createGzip } from "node:zlib";
import type { Clock } from "../../runtime/clock.ts";
import type { LiveView } from "./live-view.ts";
import type { LiveMessage, PodRow } from "./model.ts";

// Updates are shown within a second.
const SEND_EVERY_MS = 200;
const ROWS_PER_MESSAGE = 1_000;
// The page notices within ten seconds that nothing comes. Proxies close silent connections after a minute.
const BEAT_EVERY_MS = 2_000;
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
  /** Takes the text of messages: the response, or what compresses for it. */
  readonly #sent: Writable;
  readonly #clock: Clock;
  readonly #changed = new Map<string, PodRow | undefined>();
  /** The latest message of each type that the page has not got yet. */
  readonly #news = new Map<LiveMessage["type"], LiveMessage>();
  #isListed = false;

  constructor(view: StreamedView, response: ServerResponse, { clock, isZipped }: StreamOptions) {
    this.#view = view;
    this.#response = response;
    this.#sent = isZipped ? createGzip(GZIP) : response;
    this.#clock = clock;
  }

  /** Resolves when the page has closed the connection. */
  async run(hostName: string): Promise<void> {
    const response = this.#response;
    const isZipped = this.#sent !== response;
    const closed = new AbortController();
    response.once("close", () => closed.abort());
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      ...(isZipped ? { "content-encoding": "gzip" } : {}),
    });
    if (isZipped) this.#sent.pipe(response);
    const unsubscribe = this.#view.subscribe({
      onPod: (uid, row) => void this.#changed.set(uid, row),
      onNews: (message) => void this.#news.set(message.type, message),
    });
    try {
      await this.#send({ type: "host", name: hostName });
      await this.#sendBeat();
      for (let beatAt = this.#clock.now(); !closed.signal.aborted; ) {
        const now = this.#clock.now();
        await this.#sendChanges();
        if (now - beatAt >= BEAT_EVERY_MS) {
          beatAt = now;
          await this.#sendBeat();
        }
        await this.#clock.sleep(SEND_EVERY_MS, closed.signal);
      }
    } catch (error) {
      if (!closed.signal.aborted) throw error;
    } finally {
      unsubscribe();
      this.#sent.destroy();
      response.destroy();
    }
  }

  /** Says when the host was last heard, also while nothing changes. */
  #sendBeat(): Promise<void> {
    return this.#send({ type: "heard", silentMs: this.#view.silentMs });
  }

  /** Sends what has changed: first all pods, once they are read. */
  async #sendChanges(): Promise<void> {
    const news = [...this.#news.values()];
    this.#news.clear();
    for (const message of news) await this.#send(message);
    if (!this.#isListed && !this.#view.isComplete) return;
    const changed = [...this.#changed];
    this.#changed.clear();
    if (this.#isListed) {
      const rows = changed.flatMap(([, row]) => row ?? []);
      const gone = changed.flatMap(([uid, row]) => (row === undefined ? [uid] : []));
      if (changed.length > 0) await this.#send({ type: "pods", isFirst: false, rows, gone });
      return;
    }
    this.#isListed = true;
    const rows = this.#view.rows();
    for (let start = 0; start === 0 || start < rows.length; start += ROWS_PER_MESSAGE) {
      const part = rows.slice(start, start + ROWS_PER_MESSAGE);
      await this.#send({ type: "pods", isFirst: start === 0, rows: part, gone: [] });
    }
    await this.#send({ type: "complete" });
  }

  async #send(message: LiveMessage): Promise<void> {
    const response = this.#response;
    if (response.destroyed || this.#sent.write(`data: ${JSON.stringify(message)}\n\n`)) return;
    await Promise.race([once(this.#sent, "drain"), once(response, "close")]);
  }
}
