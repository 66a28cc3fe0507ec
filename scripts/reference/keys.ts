import { readFileSync } from "node:fs";
import { AUTHOR_KEYS } from "../../src/api/annotations.ts";
import { CLUSTER_PROFILES_LABEL, COPY_ANNOTATION, DELEGATION_LABEL } from "../../src/api/keys.ts";
import { code, heading, plain, table } from "./markdown.ts";

const SOURCE = new URL("../../src/api/keys.ts", import.meta.url);
const CONSTANT =
  /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?export const ([A-Z_]+) = "((?:[a-z]+\.)*legation\.dev\/[\w-]+)";/g;

/** Kinds of keys by the last word of their constants. */
const KINDS: Readonly<Record<string, string>> = {
  ANNOTATION: "annotation",
  LABEL: "label",
  FINALIZER: "finalizer",
  CONDITION: "condition",
  TAINT: "taint",
  PROPERTY: "property",
  KEY: "annotation, label",
  BY: "`spec.managedBy`",
  CONTROLLER: "`spec.controllerName`",
};

interface Key {
  readonly key: string;
  readonly kind: string;
  readonly meaning: string;
}

/** Returns all keys of src/api/keys.ts with their comments. Throws for one without a comment. */
export function documentedKeys(text: string = readFileSync(SOURCE, "utf8")): Key[] {
  return [...text.matchAll(CONSTANT)].map(([, comment, constant = "", key = ""]) => {
    const kind = KINDS[constant.slice(constant.lastIndexOf("_") + 1)];
    if (kind === undefined)
      throw new Error(`src/api/keys.ts: ${constant}: ends with none of ${Object.keys(KINDS).join(", ")}`);
    if (comment === undefined) throw new Error(`src/api/keys.ts: ${constant}: has no comment; write what it means`);
    const text = comment.replaceAll(/\n \*/g, " ").trim();
    // The kind has a column of its own.
    const meaning = text
      .replace(/^(?:Label|Annotation|Finalizer|Property|Condition)(?:: | that |(?= o[fn] ))/, "")
      .trim();
    return { key, kind, meaning: plain(meaning.charAt(0).toUpperCase() + meaning.slice(1)) };
  });
}

/** Keys that authors and operators write. All others are Legation's. */
const WRITTEN: ReadonlySet<string> = new Set([
  ...AUTHOR_KEYS,
  DELEGATION_LABEL,
  CLUSTER_PROFILES_LABEL,
  COPY_ANNOTATION,
]);

/** Returns the page of all keys. */
export function keysPage(): string {
  const keys = documentedKeys();
  const rows = (written: boolean): string[][] =>
    keys
      .filter(({ key, kind }) => (WRITTEN.has(key) && /annotation|label/.test(kind)) === written)
      .map(({ key, kind, meaning }) => [code(key), kind, meaning])
      .toSorted(([a = "", b = ""], [c = "", d = ""]) => (a + b < c + d ? -1 : 1));
  const columns = ["key", "kind", "meaning"];
  return [
    heading(
      "Keys",
      "This page lists every label, annotation, finalizer, taint and condition of Legation.\n[annotations.md](../annotations.md) has the values and their rules.",
      "`src/api/keys.ts`",
    ),
    `\n## Keys that you write\n\n${table(columns, rows(true))}`,
    `\n## Keys that Legation writes\n\n${table(columns, rows(false))}`,
  ].join("");
}
