import { ByteBuffer } from "./byte-buffer.ts";

const NEWLINE = 10;

/**
 * Splits a stream of chunks into lines. Lines stay bytes until complete, since a chunk may end inside a character. A line
 * within one chunk is a view of it, not a copy.
 */
export class LineSplitter {
  readonly #pending = new ByteBuffer();

  /** Bytes of the incomplete last line. */
  get pendingBytes(): number {
    return this.#pending.length;
  }

  /** Appends the lines that `chunk` completes to `lines`, without newlines. Skips empty lines. */
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
