import { styleText } from "node:util";
import type { Environment } from "../../kube/environment-proxy.ts";
import { type Clock, realClock } from "../../runtime/clock.ts";
import { ProgressLine } from "./progress-line.ts";

export interface Stream {
  write(text: string | Buffer): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

type Style = Parameters<typeof styleText>[0];

/** The terminal: results go to `out`, progress goes to `err`. */
export class Terminal {
  readonly #out: Stream;
  readonly #err: Stream;
  readonly #env: Environment;
  readonly #progress: ProgressLine | undefined;
  #isWide = false;

  constructor(out: Stream, err: Stream, env: Environment, clock: Pick<Clock, "now" | "after"> = realClock) {
    this.#out = out;
    this.#err = err;
    this.#env = env;
    if (err.isTTY === true && env.TERM !== "dumb") this.#progress = new ProgressLine(err, clock);
  }

  /** Columns that a line of the result may take: `COLUMNS`, else the terminal's. Infinite where the result is no terminal's. */
  get width(): number {
    if (this.#out.isTTY !== true || this.#isWide) return Number.POSITIVE_INFINITY;
    const widths = [Number(this.#env.COLUMNS), this.#out.columns ?? 0];
    return widths.find((each) => Number.isInteger(each) && each > 0) ?? Number.POSITIVE_INFINITY;
  }

  /** Lets the lines of the result be as long as on no terminal: the user asked for `-o wide`. */
  widen(): void {
    this.#isWide = true;
  }

  /** The result goes to a terminal whose screen can be written anew. */
  get canRedraw(): boolean {
    return this.#out.isTTY === true && this.#env.TERM !== "dumb";
  }

  print(line: string): void {
    this.write(`${line}\n`);
  }

  /** Writes text or bytes to standard output without a line break. */
  write(text: string | Buffer): void {
    // The result says more than that the command works.
    this.#progress?.end();
    this.#out.write(text);
  }

  progress(line: string): void {
    this.complain(`${line}\n`);
  }

  /** Writes text to standard error without a line break. */
  complain(text: string): void {
    this.#progress?.clear();
    this.#err.write(text);
  }

  /** Clears the screen and prints the result from its top. */
  redraw(text: string): void {
    this.write(`${CLEAR_SCREEN}${text}\n`);
  }

  /** Shows on a terminal, from its second second to its first result, that a command works, and since when. Nothing of it stays. */
  async working<T>(what: string, work: () => Promise<T>): Promise<T> {
    this.#progress?.begin(what);
    try {
      return await work();
    } finally {
      this.#progress?.end();
    }
  }

  step(what: string): void {
    this.#progress?.step(what);
  }

  /** Colours a part of the result on a terminal. */
  paint(style: Style, text: string): string {
    return this.#colours(this.#out) ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Colours a part of the progress on a terminal. */
  paintProgress(style: Style, text: string): string {
    return this.#colours(this.#err) ? styleText(style, text, { validateStream: false }) : text;
  }

  // https://no-color.org: any non-empty value turns colours off.
  #colours(stream: Stream): boolean {
    const { NO_COLOR, TERM } = this.#env;
    return stream.isTTY === true && (NO_COLOR === undefined || NO_COLOR === "") && TERM !== "dumb";
  }
}

// ECMA-48: cursor to the first line, and the rest of the screen erased.
const CLEAR_SCREEN = "\u001b[H\u001b[2J";
