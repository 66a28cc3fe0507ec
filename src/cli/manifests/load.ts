import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { Failure } from "../failure.ts";

/** An object of a manifest file. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | undefined;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

const manifestSchema: z.ZodType<Manifest> = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }),
});

// `kubectl apply -k` and `legation install` must apply the same objects, so nothing else may stand in the file.
const kustomizationSchema = z.strictObject({
  apiVersion: z.string().optional(),
  kind: z.string().optional(),
  resources: z.array(z.string()),
});

/** All objects of a kustomization folder or of one YAML file, in the order in which they are listed. */
export async function loadManifests(path: string): Promise<Manifest[]> {
  if (!(await stat(path)).isDirectory()) return parseManifests(await readFile(path, "utf8"), path);
  const file = join(path, "kustomization.yaml");
  const [document] = parseAllDocuments(await readFile(file, "utf8"));
  const parsed = kustomizationSchema.safeParse(document?.toJS());
  if (!parsed.success) throw malformed(file, z.prettifyError(parsed.error));
  const objects: Manifest[] = [];
  for (const resource of parsed.data.resources) objects.push(...(await loadManifests(join(path, resource))));
  return objects;
}

/** The objects of one YAML text; empty documents are passed over. */
export function parseManifests(text: string, file: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw malformed(file, error.message);
    const value: unknown = document.toJS();
    if (value === null || value === undefined) return [];
    const parsed = manifestSchema.safeParse(value);
    if (!parsed.success) throw malformed(file, z.prettifyError(parsed.error));
    return [parsed.data];
  });
}

function malformed(file: string, problem: string): Failure {
  return new Failure("failure", { object: file, problem });
}
