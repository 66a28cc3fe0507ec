import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { Failure } from "../failure.ts";

/** One object of a manifest, as its author wrote it. */
export interface WrittenObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name?: string;
    readonly generateName?: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly { readonly kind: string; readonly controller?: boolean }[];
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

const stringMap = z.record(z.string(), z.string());
const metadataSchema = z.looseObject({
  name: z.string().exactOptional(),
  generateName: z.string().exactOptional(),
  namespace: z.string().exactOptional(),
  labels: stringMap.exactOptional(),
  annotations: stringMap.exactOptional(),
  ownerReferences: z
    .array(z.looseObject({ kind: z.string(), controller: z.boolean().exactOptional() }))
    .exactOptional(),
});
const documentSchema: z.ZodType<WrittenObject> = z
  .looseObject({ apiVersion: z.string(), kind: z.string(), metadata: metadataSchema })
  .refine(({ metadata: { name, generateName } }) => (name ?? generateName) !== undefined, {
    path: ["metadata", "name"],
    message: "is missing",
  });
const listSchema = z.looseObject({ kind: z.string().endsWith("List"), items: z.array(z.unknown()) });

const EXTENSION = /\.(ya?ml|json)$/;

/** All objects of files, of the manifests in folders, and of standard input (`-`), in their order. */
export async function readDocuments(paths: readonly string[], stdin: Readable): Promise<WrittenObject[]> {
  const objects: WrittenObject[] = [];
  for (const path of paths) {
    if (path === "-") {
      objects.push(...parseDocuments(await textOf(stdin), "standard input"));
      continue;
    }
    for (const file of await filesOf(path)) objects.push(...parseDocuments(await contentOf(file), file));
  }
  return objects;
}

async function filesOf(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = (await readdir(path)).filter((name) => EXTENSION.test(name)).sort();
    if (names.length > 0) return names.map((name) => join(path, name));
  } catch (error) {
    throw unreadable(path, error);
  }
  throw new Failure("failure", { object: path, problem: "the folder has no *.yaml, *.yml or *.json" });
}

async function contentOf(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(path: string, cause: unknown): Failure {
  const problem = cause instanceof Error ? cause.message : String(cause);
  return new Failure("failure", { object: path, problem, cause });
}

/** The objects of one YAML or JSON text: empty documents are passed over, lists are what they hold. */
export function parseDocuments(text: string, file: string): WrittenObject[] {
  return parseAllDocuments(text).flatMap((document, index) => {
    const where = `${file}: document ${index + 1}`;
    const [error] = document.errors;
    if (error !== undefined) throw new Failure("failure", { object: where, problem: error.message });
    return objectsOf(document.toJS(), where);
  });
}

function objectsOf(value: unknown, where: string): WrittenObject[] {
  if (value === null || value === undefined) return [];
  const list = listSchema.safeParse(value);
  if (list.success) return list.data.items.flatMap((item, index) => objectsOf(item, `${where}: items[${index}]`));
  return [objectOf(value, where)];
}

/** A value as an object of Kubernetes; `where` is for the error. */
export function objectOf(value: unknown, where: string): WrittenObject {
  const parsed = documentSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Failure("failure", { object: where, problem: problemsOf(parsed.error) });
}

/** What is wrong, each with its field. */
export function problemsOf(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
}
