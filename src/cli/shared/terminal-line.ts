export interface LineStream {
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
