import type { Clock, Timer } from "../../runtime/clock.ts";
import { shortened } from "./text-width.ts";

/** The terminal's stream that the line is on. */
interface LineStream {
  write(text: string): unknown;
  readonly columns?: number;
}

// Commands that are done sooner show nothing.
const FIRST_MS = 1_000;
const EVERY_MS = 1_000;
// Some terminals do not tell their width.
const DEFAULT_COLUMNS = 80;
// ECMA-48: cursor to the first column, and the line erased.
const ERASE = "\r\u001b[2K";

/** A line of a terminal that says what a command works at, and for how long. Other output takes its place. */
export class ProgressLine {
  readonly #stream: LineStream;
  readonly #clock: Pick<Clock, "now" | "after">;
  #what: string | undefined;
  #startedAt = 0;
  #shown = false;
  #timer: Timer | undefined;

  constructor(stream: LineStream, clock: Pick<Clock, "now" | "after">) {
    this.#stream = stream;
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
    if (this.#shown) this.#draw();
  }

  /** Erases the line. It comes back while the command works. */
  clear(): void {
    if (this.#shown) this.#stream.write(ERASE);
    this.#shown = false;
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
    const seconds = Math.floor((this.#clock.now() - this.#startedAt) / 1000);
    const { columns = 0 } = this.#stream;
    // A line as long as the terminal is wide would move the cursor to the next one.
    const most = (columns > 0 ? columns : DEFAULT_COLUMNS) - 1;
    this.#stream.write(ERASE + shortened(`${this.#what}, ${seconds} s`, most));
    this.#shown = true;
  }
}
