// Blocks double up to here: few for what is large, and small for what is small.
const LARGEST_BLOCK = 64 * 1024;
const SMALLEST_BLOCK = 256;

/**
 * Bytes that come in chunks. What is kept of a chunk is its bytes, not the chunk: a server that sends one byte in each would
 * have some 175 bytes kept for it (measured with Node.js 24), or all that came from the socket with it. Only the first is
 * kept as it came, since most answers are one chunk. It takes twice `length` at most, beside what came with the first.
 */
export class Gathered {
  #blocks: Buffer[] = [];
  /** Bytes of the last block that are in use. */
  #filled = 0;
  #length = 0;

  /** How many bytes there are. */
  get length(): number {
    return this.#length;
  }

  add(chunk: Buffer): void {
    if (chunk.length === 0) return;
    const last = this.#blocks.at(-1);
    if (last === undefined) {
      this.#append(chunk, chunk.length);
    } else {
      const copied = chunk.copy(last, this.#filled);
      this.#filled += copied;
      if (copied < chunk.length) this.#grow(chunk.subarray(copied));
    }
    this.#length += chunk.length;
  }

  /** All of it as one; none is left. */
  take(): Buffer {
    const blocks = this.#blocks;
    const last = blocks.pop();
    if (last !== undefined) blocks.push(last.subarray(0, this.#filled));
    const [only] = blocks;
    const all = only !== undefined && blocks.length === 1 ? only : Buffer.concat(blocks, this.#length);
    this.clear();
    return all;
  }

  clear(): void {
    this.#blocks = [];
    this.#filled = 0;
    this.#length = 0;
  }

  #grow(rest: Buffer): void {
    const size = Math.min(Math.max(this.#length, SMALLEST_BLOCK), LARGEST_BLOCK);
    const block = Buffer.allocUnsafeSlow(Math.max(size, rest.length));
    rest.copy(block);
    this.#append(block, rest.length);
  }

  #append(block: Buffer, filled: number): void {
    this.#blocks.push(block);
    this.#filled = filled;
  }
}
