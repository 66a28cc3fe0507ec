import { Gathered } from "./gathered.ts";

const NEWLINE = 10;

/**
 * Cuts a stream of chunks into lines. Chunks end anywhere, also inside a character: lines stay bytes until they are whole.
 * A line within one chunk is a view on it, not a copy.
 */
export class LineSplitter {
  readonly #pending = new Gathered();

  /** Bytes of a line that has no end yet. */
  get pendingBytes(): number {
    return this.#pending.length;
  }

  /** Adds the lines that `chunk` completes to `lines`, without their newlines; empty lines are left out. */
  push(chunk: Buffer, lines: Buffer[]): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const tail = chunk.subarray(start, end);
      if (this.#pending.length > 0) {
        this.#pending.add(tail);
        lines.push(this.#pending.take());
      } else if (tail.length > 0) {
        lines.push(tail);
      }
      start = end + 1;
    }
    this.#pending.add(start === 0 ? chunk : chunk.subarray(start));
  }
}
