import { styleText } from "node:util";

/** Where a command writes; the only view that commands have of the process's streams. */
export interface Stream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

type Style = Parameters<typeof styleText>[0];

/** Results go to `out`, everything that only a person wants to see while waiting goes to `err`. */
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

  /** Text as it is, on standard output. */
  write(text: string): void {
    this.#out.write(text);
  }

  /** Prints a line of progress to standard error. */
  progress(line: string): void {
    this.#err.write(`${line}\n`);
  }

  /** Text as it is, on standard error. */
  complain(text: string): void {
    this.#err.write(text);
  }

  /** True when standard output is a person's terminal. */
  get interactive(): boolean {
    return this.#out.isTTY === true;
  }

  /** Colours a part of the result, when it goes to a terminal. */
  paint(style: Style, text: string): string {
    return this.#colours(this.#out) ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Colours a part of the progress, when it goes to a terminal. */
  paintProgress(style: Style, text: string): string {
    return this.#colours(this.#err) ? styleText(style, text, { validateStream: false }) : text;
  }

  // https://no-color.org: any non-empty value turns colours off.
  #colours(stream: Stream): boolean {
    const { NO_COLOR, TERM } = this.#env;
    return stream.isTTY === true && (NO_COLOR === undefined || NO_COLOR === "") && TERM !== "dumb";
  }
}
