import type { Duplex as Connection } from "node:stream";
import { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { closeInTime } from "../runtime/joined-sockets.ts";

const LENGTH_BYTES = 4;

/**
 * Carries a TCP connection on a port-forward, which knows no end of one direction: as chunks, each after its length, where the
 * length 0 is that end. A connection that closes before both is a cut.
 */
export class FramedStream extends Duplex {
  readonly #connection: Connection;
  readonly #clock: Clock;
  /** The bytes of a length that is not complete yet. */
  #length: Buffer = Buffer.alloc(0);
  /** The bytes that are left of the current chunk. */
  #left = 0;
  #received = false;
  #sent = false;

  constructor(connection: Connection, clock: Clock) {
    super({ allowHalfOpen: true });
    this.#connection = connection;
    this.#clock = clock;
    connection.on("data", (bytes: Buffer) => this.#onBytes(bytes));
    connection.on("error", (error) => this.destroy(error));
    for (const event of ["end", "close"]) {
      connection.once(event, () => {
        if (!this.#received || !this.#sent) this.destroy(new Error("the connection was cut"));
      });
    }
  }

  override _read(): void {
    this.#connection.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    if (chunk.length === 0) {
      done();
      return;
    }
    this.#connection.cork();
    this.#connection.write(lengthOf(chunk.length));
    this.#connection.write(chunk, done);
    this.#connection.uncork();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#sent = true;
    this.#connection.write(lengthOf(0), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (error === null && this.#received && this.#sent) {
      // The connection is not destroyed: the last bytes may still be on their way.
      this.#connection.resume();
      this.#connection.end();
      closeInTime(this.#connection, this.#clock);
    } else this.#connection.destroy();
    done(error);
  }

  #onBytes(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0 && !this.destroyed && !this.#received) {
      if (this.#left === 0) {
        const missing = LENGTH_BYTES - this.#length.length;
        this.#length = Buffer.concat([this.#length, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (this.#length.length < LENGTH_BYTES) return;
        this.#left = this.#length.readUInt32BE();
        this.#length = Buffer.alloc(0);
        if (this.#left > 0) continue;
        this.#received = true;
        this.push(null);
      } else {
        const chunk = rest.subarray(0, this.#left);
        rest = rest.subarray(chunk.length);
        this.#left -= chunk.length;
        if (!this.push(chunk)) this.#connection.pause();
      }
    }
  }
}

function lengthOf(bytes: number): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(bytes);
  return length;
}
