import { age } from "../../api/wording.ts";
import type { Clock, Timer } from "../../runtime/clock.ts";
import { type LineStream, TerminalLine } from "./terminal-line.ts";

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
