import { styleText } from "node:util";

/** A stream of the process, as commands see it. */
export interface Stream {
  write(text: string | Buffer): unknown;
  readonly isTTY?: boolean;
}

type Style = Parameters<typeof styleText>[0];

/** The terminal: results go to `out`, progress goes to `err`. */
export class Terminal {
  readonly #out: Stream;
  readonly #err: Stream;
  readonly #env: Readonly<Record<string, string | undefined>>;

  constructor(out: Stream, err: Stream, env: Readonly<Record<string, string | undefined>>) {
    this.#out = out;
    this.#err = err;
    this.#env = env;
  }

  /** Prints a line of the result to standard output. */
  print(line: string): void {
    this.#out.write(`${line}\n`);
  }

  /** Writes text or bytes to standard output without a line break. */
  write(text: string | Buffer): void {
    this.#out.write(text);
  }

  /** Prints a line of progress to standard error. */
  progress(line: string): void {
    this.#err.write(`${line}\n`);
  }

  /** Writes text to standard error without a line break. */
  complain(text: string): void {
    this.#err.write(text);
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
