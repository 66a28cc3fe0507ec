/**
 * The frames of SPDY/3.1 that a client of port-forward sends and reads
 * (https://www.chromium.org/spdy/spdy-protocol/spdy-protocol-draft3-1). Streams are the client's; the server's own control frames
 * beside RST_STREAM and PING say nothing that a client of two streams needs.
 */

const HEADER_BYTES = 8;
const CONTROL = 0x80;
const VERSION = 3;
const SYN_STREAM = 1;
const RST_STREAM = 3;
const PING = 6;
const FIN = 1;
const CANCEL = 5;
const MAX_PAYLOAD = 0xff_ff_ff;
// SYN_REPLY is the longest that servers send: a few short headers.
const LONGEST_CONTROL = 65_536;
// An empty stored block, which makes the receiver's inflater hand out what it has (Z_SYNC_FLUSH).
const FLUSH = Buffer.from([0, 0, 0, 0xff, 0xff]);
const ZLIB_HEADER = Buffer.from([0x78, 0x01]);

export interface SpdyFrames {
  onData(stream: number, chunk: Buffer): void;
  /** The server sends no more on the stream. `reset`: the stream is over in both directions. */
  onEnd(stream: number, reset: boolean): void;
  onPing(id: number): void;
  onProtocolError(message: string): void;
}

/** Returns the frame that opens a stream. `first`: it is the connection's first, whose headers begin the compressed stream. */
export function synStream(id: number, headers: Readonly<Record<string, string>>, first: boolean): Buffer {
  const pairs = Object.entries(headers);
  const block = Buffer.concat([uint32(pairs.length), ...pairs.flat().map(counted)]);
  // Stored blocks need no compressor, and receivers take them from any.
  const stored = Buffer.alloc(5);
  stored.writeUInt16LE(block.length, 1);
  stored.writeUInt16LE(block.length ^ 0xff_ff, 3);
  const compressed = [...(first ? [ZLIB_HEADER] : []), stored, block, FLUSH];
  return control(SYN_STREAM, Buffer.concat([uint32(id), uint32(0), Buffer.alloc(2), ...compressed]));
}

export function cancelStream(id: number): Buffer {
  return control(RST_STREAM, Buffer.concat([uint32(id), uint32(CANCEL)]));
}

export function ping(id: number): Buffer {
  return control(PING, uint32(id));
}

export function dataHeader(stream: number, length: number, end: boolean): Buffer {
  return Buffer.concat([uint32(stream), uint32(length + (end ? FIN * 2 ** 24 : 0))]);
}

export function* frameParts(chunk: Buffer): Generator<Buffer> {
  for (let at = 0; at < chunk.length; at += MAX_PAYLOAD) yield chunk.subarray(at, at + MAX_PAYLOAD);
}

/** Reads frames from chunks of any size. Data is passed on as it comes, never gathered. */
export class SpdyReader {
  readonly #frames: SpdyFrames;
  #head: Buffer = Buffer.alloc(0);
  #data: { readonly stream: number; left: number; readonly end: boolean } | undefined;
  #broken = false;

  constructor(frames: SpdyFrames) {
    this.#frames = frames;
  }

  read(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0 && !this.#broken)
      rest = this.#data === undefined ? this.#readFrame(rest) : this.#readData(rest);
  }

  #readData(chunk: Buffer): Buffer {
    const data = this.#data;
    if (data === undefined) return chunk;
    const part = chunk.subarray(0, data.left);
    data.left -= part.length;
    if (part.length > 0) this.#frames.onData(data.stream, part);
    if (data.left === 0) this.#endData(data);
    return chunk.subarray(part.length);
  }

  #endData({ stream, end }: { readonly stream: number; readonly end: boolean }): void {
    this.#data = undefined;
    if (end) this.#frames.onEnd(stream, false);
  }

  /** Reads a frame's header, and the whole of a control frame. Returns what follows, and nothing while it is incomplete. */
  #readFrame(chunk: Buffer): Buffer {
    const bytes = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
    this.#head = bytes;
    if (bytes.length < HEADER_BYTES) return Buffer.alloc(0);
    const [first, length] = [bytes.readUInt32BE(0), bytes.readUIntBE(5, 3)];
    const isControl = (bytes.readUInt8(0) & CONTROL) !== 0;
    if (isControl && length > LONGEST_CONTROL) return this.#fail(`a control frame of ${length} bytes`);
    if (isControl && bytes.length < HEADER_BYTES + length) return Buffer.alloc(0);
    this.#head = Buffer.alloc(0);
    const flags = bytes.readUInt8(4);
    if (!isControl) {
      const data = { stream: first, left: length, end: (flags & FIN) !== 0 };
      this.#data = data;
      if (length === 0) this.#endData(data);
      return bytes.subarray(HEADER_BYTES);
    }
    if ((bytes.readUInt16BE(0) & 0x7f_ff) !== VERSION) return this.#fail("a frame of another version of SPDY");
    this.#onControl(bytes.readUInt16BE(2), bytes.subarray(HEADER_BYTES, HEADER_BYTES + length));
    return bytes.subarray(HEADER_BYTES + length);
  }

  #onControl(type: number, payload: Buffer): void {
    if (payload.length < 4) return;
    if (type === RST_STREAM) this.#frames.onEnd(payload.readUInt32BE(0), true);
    else if (type === PING) this.#frames.onPing(payload.readUInt32BE(0));
  }

  #fail(message: string): Buffer {
    this.#broken = true;
    this.#frames.onProtocolError(`the server sent ${message}`);
    return Buffer.alloc(0);
  }
}

function control(type: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([CONTROL, VERSION, 0, type]), uint32(payload.length), payload]);
}

function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
