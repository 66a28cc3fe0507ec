import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parse, YAMLParseError } from "yaml";
import { badCredentials } from "../credentials.ts";
import { isJsonObject } from "../json.ts";

/** Words for a missing kubeconfig, wherever it is named: a flag, a variable. */
export const NO_FILE = "there is no such file";

// Fields of a cluster and of a user that name a file.
const FILE_FIELDS = ["certificate-authority", "client-certificate", "client-key", "tokenFile"];

type Fields = Readonly<Record<string, unknown>>;

/** Parses the text of a kubeconfig. Throws KubeError `BadCredentials`, which does not quote it. */
export function parseDocument(text: string, source: string): unknown {
  try {
    // Warnings are off as well, since they quote the text.
    return parse(text, { logLevel: "error" }) ?? {};
  } catch (error) {
    throw badCredentials(`not YAML: see ${placeOf(error)}; it is not shown, since it may hold a secret`, source);
  }
}

/**
 * Reads the file of a kubeconfig. Names of files become absolute, and so does a plugin's command with a slash, as in kubectl:
 * both are relative to the kubeconfig. Throws KubeError `BadCredentials`.
 */
export function readDocument(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw badCredentials(existsSync(path) ? `cannot read it: ${reason}` : NO_FILE, path, cause);
  }
  const folder = dirname(resolve(path));
  const document = withEntries(parseDocument(text, path), ["clusters", "cluster"], folder);
  return withEntries(document, ["users", "user"], folder);
}

function withEntries(document: unknown, [list, field]: readonly [string, string], folder: string): unknown {
  if (!isJsonObject(document) || !Array.isArray(document[list])) return document;
  const entries = document[list].map((entry: unknown) =>
    isJsonObject(entry) && isJsonObject(entry[field]) ? { ...entry, [field]: absolute(entry[field], folder) } : entry,
  );
  return { ...document, [list]: entries };
}

function absolute(entry: Fields, folder: string): Fields {
  const named = Object.entries(entry).filter(([name, value]) => FILE_FIELDS.includes(name) && value);
  const files = Object.fromEntries(named.map(([name, path]) => [name, resolve(folder, String(path))]));
  const { exec } = entry;
  if (!isJsonObject(exec) || typeof exec.command !== "string" || !exec.command.includes("/"))
    return { ...entry, ...files };
  return { ...entry, ...files, exec: { ...exec, command: resolve(folder, exec.command) } };
}

/** Describes where a text is not YAML, without quoting it. */
function placeOf(error: unknown): string {
  const [start] = (error instanceof YAMLParseError && error.linePos) || [];
  // Errors without a position concern aliases, which are resolved last.
  return start === undefined ? "its aliases, values that begin with *" : `line ${start.line}, column ${start.col}`;
}
