declare global {
  interface JSON {
    /** Returns a value that stringifies to exactly `text` (TC39 JSON.parse source text access; Node.js 22 and later). */
    rawJSON(text: string): object;
    /** Reports whether `rawJSON` created the value. */
    isRawJSON(value: unknown): boolean;
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
  }
}

// Integers up to 2^53 have at most 16 digits. In compact JSON a number directly follows one of these characters. A match
// inside a string, such as a digest, costs time but changes nothing.
const LONG_INTEGER = /[:,[]\s?-?\d{16}/;

/** Parses JSON. Integers beyond 2^53 become `JSON.rawJSON` values, with the same digits. Throws SyntaxError. */
export function parseJson(text: string): unknown {
  return LONG_INTEGER.test(text) ? JSON.parse(text, keepLongInteger) : JSON.parse(text);
}

function keepLongInteger(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const { source } = context;
  return source !== undefined && /^-?\d+$/.test(source) ? JSON.rawJSON(source) : value;
}

// Heap overhead in V8 of an object or array, and of each further value in it (measured with Node.js 24).
const CONTAINER_BYTES = 64;
const VALUE_BYTES = 32;

/** Estimates, from above, the heap bytes of a parsed JSON text: `{},` is three characters but a whole object. */
export function heapBytesOf(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) index = endOfString(text, index + 1);
    else if (code === COMMA) bytes += VALUE_BYTES;
    else if (code === OPENING_BRACKET || code === OPENING_BRACE) bytes += CONTAINER_BYTES;
  }
  return bytes;
}

/** Returns the index of the quote that closes the string around `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1;
    while (before >= start && text.charCodeAt(before) === BACKSLASH) before -= 1;
    // After an even number of backslashes the quote is not escaped.
    if ((quote - before) % 2 === 1) return quote;
  }
  return text.length;
}

const MANAGED_FIELDS = '"managedFields":[';
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACE = 0x7b;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;

/**
 * Removes the `managedFields` arrays from a JSON text. They are half of an object's size and more than half of its parsing
 * time. Exact, since the key's quotes would be escaped inside a string.
 */
export function cutManagedFields(text: string): string {
  let at = text.indexOf(MANAGED_FIELDS);
  if (at === -1) return text;
  let kept = "";
  let from = 0;
  while (at !== -1) {
    const end = endOfArray(text, at + MANAGED_FIELDS.length);
    // JSON.parse will reject a text that ends within the array.
    if (end === -1) return text;
    const commaBefore = text[at - 1] === ",";
    kept += text.slice(from, commaBefore ? at - 1 : at);
    from = !commaBefore && text[end] === "," ? end + 1 : end;
    at = text.indexOf(MANAGED_FIELDS, from);
  }
  return kept + text.slice(from);
}

/** Returns the index after the bracket that closes the array around `start`; -1 when there is none. */
function endOfArray(text: string, start: number): number {
  let depth = 1;
  for (let index = start; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      index = endOfString(text, index + 1);
    } else if (code === OPENING_BRACKET) {
      depth += 1;
    } else if (code === CLOSING_BRACKET) {
      depth -= 1;
      if (depth === 0) return index + 1;
    }
  }
  return -1;
}

export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the estimated heap bytes of an object, for a reflector's `sizeOf`. */
export function heapBytesOfObject(object: object): number {
  return heapBytesOf(JSON.stringify(object));
}

/** Returns the JSON value of a text. Undefined when it is none. */
export function jsonOrNothing(text: string | undefined): unknown {
  // An error costs more than most texts.
  if (text === undefined || text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the message of a `Status`. Undefined when the text is none. */
export function statusMessage(text: string): string | undefined {
  const status = jsonOrNothing(text);
  return isJsonObject(status) && status.kind === "Status" && typeof status.message === "string"
    ? status.message
    : undefined;
}
