import { parse } from "yaml";
import type { z } from "zod";

/** The value of a JSON or YAML text, or all its problems. */
export type ParsedText<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly string[] };

// All pods of a workload have the same text, read repeatedly.
const KEPT = 500;

/** Returns a parser with a cache. Equal texts give the same object, so callers must not change it. */
export function structuredTextReader<T>(schema: z.ZodType<T>): (text: string) => ParsedText<T> {
  const known = new Map<string, ParsedText<T>>();
  return (text) => {
    let parsed = known.get(text);
    if (parsed === undefined) {
      parsed = parseStructuredText(text, schema);
      if (known.size >= KEPT) known.clear();
      known.set(text, parsed);
    }
    return parsed;
  };
}

// Limits parsing time: deeply nested YAML takes a second per 50,000 characters, which would delay others' reviews.
const LONGEST = 16_384;

/** Returns the problem of a text that is too long to be read as JSON or YAML. */
export function lengthProblem({ length }: string): string | undefined {
  return length > LONGEST ? `has ${length} characters; write no more than ${LONGEST}` : undefined;
}

/** Parses JSON or YAML of a schema. Each problem starts with its field's path. */
function parseStructuredText<T>(text: string, schema: z.ZodType<T>): ParsedText<T> {
  const tooLong = lengthProblem(text);
  if (tooLong !== undefined) return { ok: false, problems: [tooLong] };
  let written: unknown;
  try {
    // Aliases would let a short text stand for a huge one.
    written = parse(text, { maxAliasCount: 0 });
  } catch (error) {
    const [reason = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    return { ok: false, problems: [`is neither JSON nor YAML: ${reason}`] };
  }
  const checked = schema.safeParse(written);
  if (checked.success) return { ok: true, value: checked.data };
  return { ok: false, problems: checked.error.issues.map(({ path, message }) => `${pathText(path)}${message}`) };
}

function pathText(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return text === "" ? "" : `${text.replace(/^\./, "")}: `;
}
