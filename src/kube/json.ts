declare global {
  interface JSON {
    /** Stringifies to exactly `text` (TC39 JSON.parse source text access; Node 22 and later). */
    rawJSON(text: string): object;
    /** True for what `rawJSON` made. */
    isRawJSON(value: unknown): boolean;
    parse(
      text: string,
      reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
    ): unknown;
  }
}

// Integers up to 2^53 have at most 16 digits. API servers send compact JSON, so a number follows one of these characters
// at once; a digit run inside a string (a digest, say) may match too, which costs time but changes nothing.
const LONG_INTEGER = /[:,[]\s?-?\d{16}/;

/**
 * `JSON.parse` that keeps integers beyond 2^53: they become `JSON.rawJSON` values, which stringify to the same digits.
 * Throws SyntaxError.
 */
export function parseJson(text: string): unknown {
  return LONG_INTEGER.test(text) ? JSON.parse(text, keepLongInteger) : JSON.parse(text);
}

function keepLongInteger(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const { source } = context;
  return source !== undefined && /^-?\d+$/.test(source) ? JSON.rawJSON(source) : value;
}

// What V8 takes beside the text for an object or array, and for each further value in one (measured with Node.js 24).
const CONTAINER_BYTES = 64;
const VALUE_BYTES = 32;

/** Bytes of heap for what a JSON text says, rather too many: `{},` is three characters, but not when it is parsed. */
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

/** Index of the quote that closes the string which `start` is inside of; the end of the text when there is none. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1;
    while (before >= start && text.charCodeAt(before) === BACKSLASH) before -= 1;
    // An even number of backslashes is backslashes.
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
 * JSON text without the `managedFields` arrays in it. They are half of an object and cost more than half of its parsing,
 * since their keys are all different. Exact: inside a string the quotes of the key would be escaped.
 */
export function cutManagedFields(text: string): string {
  let at = text.indexOf(MANAGED_FIELDS);
  if (at === -1) return text;
  let kept = "";
  let from = 0;
  while (at !== -1) {
    const end = endOfArray(text, at + MANAGED_FIELDS.length);
    // Text that ends within the array is for JSON.parse to refuse.
    if (end === -1) return text;
    const commaBefore = text[at - 1] === ",";
    kept += text.slice(from, commaBefore ? at - 1 : at);
    from = !commaBefore && text[end] === "," ? end + 1 : end;
    at = text.indexOf(MANAGED_FIELDS, from);
  }
  return kept + text.slice(from);
}

/** Index after the bracket that closes the array which `start` is inside of; -1 when there is none. */
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
