import { TerminalLine } from "../../src/cli/shared/progress-line.ts";
import type { Stream } from "../../src/cli/shared/terminal.ts";

// A log that is read later needs no more.
const LOGGED_EVERY_MS = 60_000;

/** A line that is told again and again while one thing lasts: a build with its seconds, say. */
const REPEATED = /: \d+ s, /;

/** Shows progress in one line: rewritten on a terminal, elsewhere told now and then. */
export class ProgressLine {
  readonly #stream: Stream & { readonly columns?: number };
  readonly #now: () => number;
  #loggedAt = Number.NEGATIVE_INFINITY;
  readonly #line: TerminalLine;

  constructor(stream: Stream & { readonly columns?: number }, now: () => number = () => performance.now()) {
    this.#stream = stream;
    this.#line = new TerminalLine(stream);
    this.#now = now;
  }

  /** Shows a line in the place of the one before. */
  show(line: string): void {
    if (this.#stream.isTTY === true) {
      this.#line.show(`   ${line}`.slice(0, this.#line.columns));
      return;
    }
    const now = this.#now();
    if (REPEATED.test(line) && now - this.#loggedAt < LOGGED_EVERY_MS) return;
    this.#loggedAt = now;
    this.#stream.write(`   ${line}\n`);
  }

  /** Takes the line away, so that other output begins in an empty one. */
  clear(): void {
    this.#line.clear();
  }
}
