import { stripVTControlCharacters } from "node:util";
import { stringify } from "yaml";
import type { KubeObject } from "../../api/kubernetes.ts";
import { LAST_APPLIED_ANNOTATION } from "../../api/last-applied.ts";
import type { TablePage } from "../../kube/tables.ts";
import { table } from "../shared/output.ts";

const INDENT = 2;
// The events of one object all have it.
const OBJECT_COLUMN = "OBJECT";

export interface Described {
  readonly cluster: string;
  readonly object: KubeObject;
  /** Undefined: they could not be read. */
  readonly events: TablePage | undefined;
}

/** Formats an object: its metadata, each of its fields as YAML, its events. Values of Secrets are left out. */
export function descriptionOf({ cluster, object, events }: Described, terminalWidth?: number): string {
  const { apiVersion = "", kind = "", metadata = {}, ...content } = object;
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => key !== LAST_APPLIED_ANNOTATION);
  const owners = (metadata.ownerReferences ?? []).map((owner) => `${owner.kind}/${owner.name}`);
  const head: Readonly<Record<string, readonly (string | undefined)[]>> = {
    Cluster: [cluster],
    Name: [metadata.name ?? ""],
    Namespace: [metadata.namespace],
    Kind: [`${kind} (${apiVersion})`],
    Labels: pairs(Object.entries(metadata.labels ?? {}), "="),
    Annotations: pairs(annotations, ": "),
    "Owned by": [owners.length === 0 ? undefined : owners.join(", ")],
    Created: [metadata.creationTimestamp ?? undefined],
    Deleted: [metadata.deletionTimestamp],
    Finalizers: [metadata.finalizers?.join(", ")],
  };
  const told = Object.entries(head).flatMap(([title, values]) =>
    values.flatMap((value, index) => (value === undefined ? [] : [[index === 0 ? `${title}:` : "", value] as const])),
  );
  const width = Math.max(...told.map(([title]) => title.length)) + "  ".length;
  const lines = told.map(([title, value]) => title.padEnd(width) + value);
  const shown = kind === "Secret" && apiVersion === "v1" ? withoutValues(content) : content;
  for (const [field, value] of Object.entries(shown)) lines.push(section(field, value));
  return plain([...lines, ...eventLines(events, terminalWidth)].join("\n"));
}

function pairs(entries: readonly (readonly [string, string])[], separator: string): readonly string[] {
  return entries.length === 0 ? ["<none>"] : entries.map(([key, value]) => `${key}${separator}${value}`);
}

function section(field: string, value: unknown): string {
  const title = `${field.charAt(0).toUpperCase()}${field.slice(1)}`;
  return stringify({ [title]: value }, { lineWidth: 0, aliasDuplicateObjects: false }).trimEnd();
}

/** Returns the fields of a Secret with the sizes of its values in their place, as kubectl shows them. */
function withoutValues(content: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { data, ...rest } = content;
  if (typeof data !== "object" || data === null) return content;
  const sizeOf = (value: unknown): string => `${Buffer.from(String(value), "base64").length} bytes`;
  return { ...rest, data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, sizeOf(value)])) };
}

function eventLines(events: TablePage | undefined, width = Number.POSITIVE_INFINITY): string[] {
  if (events === undefined) return ["Events: not readable"];
  if (events.rows.length === 0) return ["Events: <none>"];
  const kept = events.columns
    .map(({ name, priority }, index) => ({ title: name.toUpperCase(), priority, index }))
    .filter(({ title, priority }) => priority === 0 && title !== OBJECT_COLUMN);
  const rows = events.rows.map(({ cells }) =>
    kept.map(({ index }) => String(cells[index] ?? "").replaceAll("\n", " ")),
  );
  const titles = kept.map(({ title }) => title);
  const lines = table(titles, rows, width - INDENT, ["TYPE", "LAST SEEN"]).split("\n");
  return ["Events:", ...lines.map((line) => " ".repeat(INDENT) + line)];
}

/** Removes characters that control the terminal: a member may send any. */
function plain(text: string): string {
  return stripVTControlCharacters(text).replace(/[^\P{Cc}\n\t]|\p{Bidi_Control}/gu, "");
}
