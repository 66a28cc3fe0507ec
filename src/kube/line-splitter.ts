const NEWLINE = 10;

/**
 * Cuts a stream of chunks into lines. Chunks end anywhere, also inside a character: lines stay bytes until they are whole.
 * A line within one chunk is a view on it, not a copy.
 */
export class LineSplitter {
  #parts: Buffer[] = [];
  #pendingBytes = 0;

  /** Bytes of a line that has no end yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Adds the lines that `chunk` completes to `lines`, without their newlines; empty lines are left out. */
  push(chunk: Buffer, lines: Buffer[]): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const tail = chunk.subarray(start, end);
      if (this.#parts.length > 0) {
        // One concatenation per line, however many chunks a large object came in.
        this.#parts.push(tail);
        lines.push(Buffer.concat(this.#parts));
        this.#parts = [];
        this.#pendingBytes = 0;
      } else if (tail.length > 0) {
        lines.push(tail);
      }
      start = end + 1;
    }
    if (start === chunk.length) return;
    this.#parts.push(start === 0 ? chunk : chunk.subarray(start));
    this.#pendingBytes += chunk.length - start;
  }
}
