declare global {
  interface JSON {
    /** Stringifies to exactly `text` (TC39 JSON.parse source text access; Node 22 and later). */
    rawJSON(text: string): object;
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
