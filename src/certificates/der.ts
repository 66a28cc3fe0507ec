/** Writes and reads DER (ITU-T X.690), as far as certificates need it. */

/** Tags of the types in use. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

const SHORT_LENGTHS = 0x80;
const BYTE = 256;

/** Returns a value with its tag and length. */
export function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(tag, ...lengthOf(content)), content]);
}

export function sequence(...parts: readonly Uint8Array[]): Buffer {
  return der(TAG.sequence, ...parts);
}

/** Returns a context-specific value, such as `[0]`, that has parts. */
export function tagged(number: number, ...parts: readonly Uint8Array[]): Buffer {
  return der(0xa0 + number, ...parts);
}

/** Returns a context-specific value of bytes. */
export function taggedBytes(number: number, content: Uint8Array): Buffer {
  return der(0x80 + number, content);
}

/** Returns bits, of which the last byte leaves some unused. */
export function bitString(content: Uint8Array, unused = 0): Buffer {
  return der(TAG.bitString, Buffer.of(unused), content);
}

/** Returns an object identifier such as `2.5.4.3`. */
export function objectIdentifier(text: string): Buffer {
  const [first = 0, second = 0, ...others] = text.split(".").map(Number);
  const bytes = others.flatMap((arc) => {
    const digits = [arc % 128];
    for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift(128 + (rest % 128));
    return digits;
  });
  return der(TAG.objectIdentifier, Buffer.of(first * 40 + second, ...bytes));
}

/** Returns a time in seconds, in the form that RFC 5280 requires for its year. */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/\.\d+|[-:T]/g, "");
  const isUtcTime = date.getUTCFullYear() < 2050;
  return isUtcTime ? der(TAG.utcTime, Buffer.from(digits.slice(2))) : der(TAG.generalizedTime, Buffer.from(digits));
}

/** A value that was read. */
export interface Value {
  readonly tag: number;
  readonly content: Buffer;
  /** With tag and length. */
  readonly bytes: Buffer;
}

/** Returns the values that follow each other in `bytes`. Throws if they are not DER. */
export function readAll(bytes: Buffer): Value[] {
  const values: Value[] = [];
  for (let at = 0; at < bytes.length; ) {
    const value = readAt(bytes, at);
    values.push(value);
    at += value.bytes.length;
  }
  return values;
}

function readAt(bytes: Buffer, at: number): Value {
  const [tag, first] = [bytes[at], bytes[at + 1]];
  if (tag === undefined || first === undefined) throw new Error("the value has no length");
  const lengthBytes = first < SHORT_LENGTHS ? 0 : first - SHORT_LENGTHS;
  const begin = at + 2 + lengthBytes;
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes);
  const content = bytes.subarray(begin, begin + length);
  const whole = bytes.subarray(at, begin + length);
  const isShortest = whole.subarray(1, begin - at).equals(Buffer.from(lengthOf(content)));
  if (content.length !== length || !isShortest)
    throw new Error("the value is cut off, or its length not in the shortest form");
  return { tag, content, bytes: whole };
}

function lengthOf({ length }: Uint8Array): number[] {
  if (length < SHORT_LENGTHS) return [length];
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / BYTE)) bytes.unshift(rest % BYTE);
  return [SHORT_LENGTHS + bytes.length, ...bytes];
}
