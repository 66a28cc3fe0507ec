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
  #shown = false;

  constructor(stream: LineStream) {
    this.#stream = stream;
  }

  get isShown(): boolean {
    return this.#shown;
  }

  /** Columns for text: a longer one moves the cursor to the next line, and only its last row would be erased. */
  get columns(): number {
    const { columns = 0 } = this.#stream;
    return (columns > 0 ? columns : DEFAULT_COLUMNS) - 1;
  }

  show(text: string): void {
    this.#stream.write(ERASE + text);
    this.#shown = true;
  }

  /** Erases the line, so that other output begins in an empty one. */
  clear(): void {
    if (this.#shown) this.#stream.write(ERASE);
    this.#shown = false;
  }
}

// Commands that are done sooner show nothing.
const FIRST_MS = 1_000;
const EVERY_MS = 1_000;

/** A line of a terminal that says what a command works at, and for how long. Other output takes its place. */
export class ProgressLine {
  readonly #line: TerminalLine;
  readonly #clock: Pick<Clock, "now" | "after">;
  #what: string | undefined;
  #startedAt = 0;
  #timer: Timer | undefined;

  constructor(stream: LineStream, clock: Pick<Clock, "now" | "after">) {
    this.#line = new TerminalLine(stream);
    this.#clock = clock;
  }

  begin(what: string): void {
    this.#what = what;
    this.#startedAt = this.#clock.now();
    this.#plan(FIRST_MS);
  }

  step(what: string): void {
    if (this.#what === undefined) return;
    this.#what = what;
    if (this.#line.isShown) this.#draw();
  }

  /** Erases the line. It comes back while the command works. */
  clear(): void {
    this.#line.clear();
  }

  end(): void {
    this.#timer?.cancel();
    this.clear();
    this.#what = undefined;
  }

  #plan(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(ms, () => {
      this.#draw();
      this.#plan(EVERY_MS);
    });
  }

  #draw(): void {
    const text = `${this.#what}, ${age(this.#clock.now() - this.#startedAt)}`;
    const { columns } = this.#line;
    // ASCII alone: these are words of the commands themselves.
    this.#line.show(text.length <= columns ? text : `${text.slice(0, Math.max(0, columns - 1))}…`);
  }
}
