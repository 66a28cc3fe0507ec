import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { addAbortSignal, type Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import {
  type Document,
  type DocumentOptions,
  type ParseOptions,
  parseAllDocuments,
  type ScalarTag,
  type SchemaOptions,
  type Tags,
} from "yaml";
import { z } from "zod";
import { jsonOrNothing, withoutNulls } from "../../api/json.ts";
import { Failure } from "./failure.ts";

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
    readonly ownerReferences?: readonly {
      readonly kind: string;
      readonly name?: string;
      readonly controller?: boolean;
    }[];
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
    .array(
      z.looseObject({ kind: z.string(), name: z.string().exactOptional(), controller: z.boolean().exactOptional() }),
    )
    .exactOptional(),
});
const documentSchema: z.ZodType<WrittenObject> = z
  .looseObject({ apiVersion: z.string(), kind: z.string(), metadata: metadataSchema })
  .refine(({ metadata: { name, generateName } }) => (name ?? generateName) !== undefined, {
    path: ["metadata", "name"],
    message: "is missing",
  });
const listSchema = z.looseObject({ kind: z.string().endsWith("List"), items: z.array(z.unknown()).nullable() });

const EXTENSION = /\.(ya?ml|json)$/;

/** Reads all objects of files, folders and standard input (`-`), in their order. The signal ends a standard input that stays open. */
export async function readDocuments(
  paths: readonly string[],
  stdin: Readable,
  signal: AbortSignal,
): Promise<WrittenObject[]> {
  const objects: WrittenObject[] = [];
  for (const path of paths) {
    if (path === "-") {
      objects.push(...parseDocuments(await textOf(addAbortSignal(signal, stdin)), "standard input"));
      continue;
    }
    for (const [file, text] of await readTexts(path)) objects.push(...parseDocuments(text, file));
  }
  return objects;
}

/** Reads a file, or those of a folder. Rejects with `Failure`. */
async function readTexts(path: string): Promise<readonly (readonly [file: string, text: string])[]> {
  let object = path;
  try {
    const isFolder = (await stat(path)).isDirectory();
    const names = isFolder ? (await readdir(path)).filter((name) => EXTENSION.test(name)).sort() : [];
    const files = isFolder ? names.map((name) => join(path, name)) : [path];
    const texts: [string, string][] = [];
    for (object of files) texts.push([object, await readFile(object, "utf8")]);
    if (texts.length > 0) return texts;
  } catch (cause) {
    const isMissing = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
    const isUrl = /^https?:\/\//.test(path);
    const message = cause instanceof Error ? cause.message : String(cause);
    const problem = isMissing ? "there is no such file or folder" : message;
    throw new Failure("failure", {
      object,
      problem: isUrl ? "is not on this machine, and is not fetched" : problem,
      remedy: isUrl ? `write curl -sL ${path} | legation plan -f -` : undefined,
      cause,
    });
  }
  throw new Failure("failure", {
    object: path,
    problem: "the folder has no *.yaml, *.yml or *.json",
    remedy: "give a folder that has some, or the files themselves; folders inside a folder are not looked into",
  });
}

// YAML 1.2 writes octal numbers so, and Go's parser of numbers takes them (strconv.ParseInt with base 0).
const octalWithLetter: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^[-+]?0o[0-7_]+$/i,
  resolve: (text) => {
    const value = Number.parseInt(text.replace(/^[-+]?0o/i, "").replaceAll("_", ""), 8);
    return text.startsWith("-") ? -value : value;
  },
};

const TIMESTAMP = "tag:yaml.org,2002:timestamp";

/**
 * YAML as kubectl reads it (sigs.k8s.io/yaml on go-yaml v2): version 1.1, with merge keys, `0644` in octal, and `yes` and `on` as
 * booleans, but without its numbers in base 60 and its timestamps, which stay text.
 */
const KUBECTL_DIALECT: ParseOptions & DocumentOptions & SchemaOptions = {
  version: "1.1",
  merge: true,
  customTags: (tags: Tags) => [
    octalWithLetter,
    ...tags.filter(
      (tag) => typeof tag === "string" || !(tag.tag === TIMESTAMP || ("format" in tag && tag.format === "TIME")),
    ),
  ],
};

/** Parses one YAML or JSON text. Empty documents are skipped, lists are unpacked. */
export function parseDocuments(text: string, file: string): WrittenObject[] {
  // A hundred times as fast as the YAML parser: `kubectl get -o json` writes much. Several documents, or YAML that begins like JSON,
  // and a text with an error, whose place the YAML parser names, are no JSON.
  const json = /^\s*\{/.test(text) ? jsonOrNothing(text) : undefined;
  if (json !== undefined) return objectsOf(json, `${file}: document 1`);
  return parseAllDocuments(text, KUBECTL_DIALECT).flatMap((document, index) => {
    const where = `${file}: document ${index + 1}`;
    const [error] = document.errors;
    if (error !== undefined) throw new Failure("failure", { object: where, problem: error.message });
    return objectsOf(plainOf(document, where), where);
  });
}

function plainOf(document: Document, where: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    // Nested aliases may fill the memory.
    throw new Failure("failure", { object: where, problem: error instanceof Error ? error.message : String(error) });
  }
}

function objectsOf(value: unknown, where: string): WrittenObject[] {
  if (value === null || value === undefined) return [];
  const list = listSchema.safeParse(value);
  if (list.success)
    return (list.data.items ?? []).flatMap((item, index) => objectsOf(item, `${where}: items[${index}]`));
  return [objectOf(value, where)];
}

/** Reads a value as an object of Kubernetes; `where` is for the error. */
export function objectOf(value: unknown, where: string): WrittenObject {
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new Failure("failure", {
      object: where,
      problem: "is no object of Kubernetes",
      remedy: "write apiVersion, kind and metadata, as for `kubectl apply`",
    });
  }
  const parsed = documentSchema.safeParse(withoutNulls(value));
  if (parsed.success) return parsed.data;
  throw new Failure("failure", { object: where, problem: problemsOf(parsed.error) });
}

function problemsOf(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
}

/** Parses an object by a schema. Throws a `Failure` that names a wrong field. */
export function readFields<T>(schema: z.ZodType<T>, object: WrittenObject): T {
  const parsed = schema.safeParse(object);
  if (parsed.success) return parsed.data;
  const { name, generateName } = object.metadata;
  throw new Failure("failure", {
    object: `${object.kind} ${name ?? `${generateName}*`}`,
    problem: problemsOf(parsed.error),
  });
}
