import { age } from "../../api/wording.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";

interface LineStream {
  write(text: string): unknown;
  readonly columns?: number;
}

// Some terminals do not tell their width.
const DEFAULT_COLUMNS = 80;
// ECMA-48: cursor to the first column, and the line erased.
const ERASE = "\r\u001b[2K";

/** A line of a terminal that is written in place of its earlier text. */
export class TerminalLine {
  readonly #stream: LineStream;
  isShown = false;

  constructor(stream: LineStream) {
    this.#stream = stream;
  }

  /** Columns for text: a longer one moves the cursor to the next line, and only its last row would be erased. */
  get columns(): number {
    return (this.#stream.columns || DEFAULT_COLUMNS) - 1;
  }

  show(text: string): void {
    this.#stream.write(ERASE + text);
    this.isShown = true;
  }

  /** Erases the line, so that other output begins in an empty one. */
  clear(): void {
    if (this.isShown) this.#stream.write(ERASE);
    this.isShown = false;
  }
}

// Commands that are done sooner show nothing.
const EVERY_MS = 1_000;

/** A line that says what a command works at, and for how long. Cleared for other output, it comes back while the command works. */
export class ProgressLine extends TerminalLine {
  readonly #clock: Pick<Clock, "now" | "after">;
  #what: string | undefined;
  #startedAt = 0;
  #timer: Timer | undefined;

  constructor(stream: LineStream, clock: Pick<Clock, "now" | "after">) {
    super(stream);
    this.#clock = clock;
  }

  begin(what: string): void {
    this.#what = what;
    this.#startedAt = this.#clock.now();
    this.#plan();
  }

  step(what: string): void {
    if (this.#what === undefined) return;
    this.#what = what;
    if (this.isShown) this.#draw();
  }

  end(): void {
    this.#timer?.cancel();
    this.clear();
    this.#what = undefined;
  }

  #plan(): void {
    this.#timer = this.#clock.after(EVERY_MS, () => {
      this.#draw();
      this.#plan();
    });
  }

  #draw(): void {
    const text = `${this.#what}, ${age(this.#clock.now() - this.#startedAt)}`;
    // ASCII alone: these are words of the commands themselves.
    this.show(text.length <= this.columns ? text : `${text.slice(0, Math.max(0, this.columns - 1))}…`);
  }
}
