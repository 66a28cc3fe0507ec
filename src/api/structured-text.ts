import { parse } from "yaml";
import type { z } from "zod";

/** The value of a JSON or YAML text, or all its problems. */
export type ParsedText<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly string[] };

// All pods of a workload have the same text, read at each decision.
const KEPT = 1_000;

/** Returns a parser with a cache. Equal texts give the same object, so callers must not change it. */
export function cachedReader<Parsed>(parseText: (text: string) => Parsed): (text: string) => Parsed {
  const known = new Map<string, Parsed>();
  return (text) => {
    let parsed = known.get(text);
    if (parsed === undefined) {
      parsed = parseText(text);
      if (known.size >= KEPT) known.clear();
      known.set(text, parsed);
    }
    return parsed;
  };
}

/** Returns a cached parser of texts of a schema. */
export function structuredTextReader<T>(schema: z.ZodType<T>): (text: string) => ParsedText<T> {
  return cachedReader((text) => parseStructuredText(text, schema));
}

// Limits parsing time: deeply nested YAML takes a second per 50,000 characters, which would delay others' reviews.
const LONGEST = 16_384;

/** Returns the problem of a text that is too long to be read as JSON or YAML. */
export function lengthProblem({ length }: string): string | undefined {
  return length > LONGEST ? `has ${length} characters; write no more than ${LONGEST}` : undefined;
}

/** Reads JSON, which is YAML, too, or YAML without aliases: these would let a short text stand for a huge one. */
export function readYaml(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    return { value: parse(text, { maxAliasCount: 0 }) };
  } catch (error) {
    const [reason = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    return { problem: `is neither JSON nor YAML: ${reason.replace(/:$/, "")}` };
  }
}

/** Parses JSON or YAML of a schema. Each problem starts with its field's path. */
function parseStructuredText<T>(text: string, schema: z.ZodType<T>): ParsedText<T> {
  const tooLong = lengthProblem(text);
  if (tooLong !== undefined) return { ok: false, problems: [tooLong] };
  const written = readYaml(text);
  if ("problem" in written) return { ok: false, problems: [written.problem] };
  const checked = schema.safeParse(written.value);
  if (checked.success) return { ok: true, value: checked.data };
  return { ok: false, problems: checked.error.issues.map(({ path, message }) => `${pathText(path)}${message}`) };
}

function pathText(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return text === "" ? "" : `${text.replace(/^\./, "")}: `;
}
