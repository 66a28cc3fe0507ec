// Blocks double up to this size: few blocks for a large body, small ones for a small body. glibc returns freed blocks of more than
// 128 kB to the system, and smaller ones seldom.
const LARGEST_BLOCK = 256 * 1024;
const SMALLEST_BLOCK = 256;

/**
 * Collects bytes from chunks. Copies chunks into blocks: keeping them would cost about 175 bytes for a chunk of one byte, or
 * the whole socket buffer behind it. Keeps only the first chunk as it is, since most bodies are one chunk. Uses twice
 * `length` at most, beside the first chunk's buffer.
 */
export class ByteBuffer {
  #blocks: Buffer[] = [];
  /** Bytes used in the last block. */
  #filled = 0;
  #length = 0;

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

  /** Returns all bytes as one buffer, and empties the collector. */
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
