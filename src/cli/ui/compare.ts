import { stringify } from "yaml";
import { isJsonObject, type JsonObject } from "../../api/json.ts";

/** A line of two objects side by side, as YAML. An object without the field has no text. */
export interface ComparedLine {
  readonly path: string;
  readonly left?: string;
  readonly right?: string;
  readonly differs: boolean;
}

/** Settings of a comparison. */
export interface CompareOptions {
  /** Hides the values of these top-level fields, which is where Secrets have them. */
  readonly hidden?: ReadonlySet<string>;
}

// Annotations may hold whole manifests.
const LONGEST_VALUE = 160;
// Fields that identify the items of Kubernetes' lists. The first one that all items have, each its own value, pairs them.
const ITEM_KEYS = ["name", "type", "mountPath", "containerPort", "port", "uid", "ip", "key"];

/** Returns the lines of two objects in step, so that equal fields share a line. Items of lists are paired by their keys. */
export function compareObjects(
  left: JsonObject | undefined,
  right: JsonObject | undefined,
  { hidden = new Set() }: CompareOptions = {},
): ComparedLine[] {
  const one = { hidden, isHidden: false };
  return linesOfFields(left, right, "", "", one);
}

interface Context {
  readonly hidden: ReadonlySet<string>;
  readonly isHidden: boolean;
}

function linesOfFields(
  left: JsonObject | undefined,
  right: JsonObject | undefined,
  indent: string,
  path: string,
  context: Context,
): ComparedLine[] {
  const names = merged(fieldsOf(left), fieldsOf(right));
  return names.flatMap((name) =>
    linesOfValue(left?.[name], right?.[name], {
      label: `${nameText(name)}:`,
      indent,
      path: path === "" ? name : `${path}.${name}`,
      context: { ...context, isHidden: context.isHidden || (path === "" && context.hidden.has(name)) },
    }),
  );
}

interface Place {
  /** `spec:`, or nothing for an item of a list. */
  readonly label: string;
  readonly indent: string;
  readonly path: string;
  readonly context: Context;
}

function linesOfValue(left: unknown, right: unknown, place: Place): ComparedLine[] {
  const { label, indent, path, context } = place;
  const isFields = (value: unknown): boolean => isJsonObject(value) && Object.keys(value).length > 0;
  const isList = (value: unknown): boolean => Array.isArray(value) && value.length > 0;
  const areBoth = (is: (value: unknown) => boolean): boolean =>
    (is(left) || left === undefined) && (is(right) || right === undefined);
  if (areBoth(isFields)) {
    const fields = linesOfFields(recordOf(left), recordOf(right), `${indent}  `, path, context);
    return label === "" ? fields : [head(left, right, place), ...fields];
  }
  if (areBoth(isList)) {
    // An item that is a list itself begins behind the dash of its place.
    const own = label === "" ? `${indent}  ` : indent;
    const items = pairsOf(listOf(left), listOf(right)).flatMap(({ id, left: one, right: other }) =>
      dashed(linesOfValue(one, other, { label: "", indent: own, path: `${path}[${id}]`, context }), own),
    );
    return label === "" ? items : [head(left, right, place), ...items];
  }
  const text = (value: unknown): string =>
    `${indent}${label === "" ? "  " : `${label} `}${context.isHidden ? hiddenText(value) : valueText(value)}`;
  return [
    {
      path,
      ...(left === undefined ? {} : { left: text(left) }),
      ...(right === undefined ? {} : { right: text(right) }),
      differs: JSON.stringify(left) !== JSON.stringify(right),
    },
  ];
}

function head(left: unknown, right: unknown, { label, indent, path }: Place): ComparedLine {
  const text = `${indent}${label}`;
  return {
    path,
    ...(left === undefined ? {} : { left: text }),
    ...(right === undefined ? {} : { right: text }),
    differs: (left === undefined) !== (right === undefined),
  };
}

/** Writes the dash of a list's item into its first line on each side. */
function dashed(lines: readonly ComparedLine[], indent: string): ComparedLine[] {
  const firstLeft = lines.findIndex(({ left }) => left !== undefined);
  const firstRight = lines.findIndex(({ right }) => right !== undefined);
  const dash = (text: string): string => `${indent}- ${text.slice(indent.length + 2)}`;
  return lines.map((line, index) => ({
    ...line,
    ...(index === firstLeft && line.left !== undefined ? { left: dash(line.left) } : {}),
    ...(index === firstRight && line.right !== undefined ? { right: dash(line.right) } : {}),
  }));
}

interface Pair {
  readonly id: string;
  readonly left: unknown;
  readonly right: unknown;
}

function pairsOf(left: readonly unknown[], right: readonly unknown[]): Pair[] {
  const key = ITEM_KEYS.find((field) => isKey(left, field) && isKey(right, field));
  if (key === undefined) {
    const length = Math.max(left.length, right.length);
    return Array.from({ length }, (_, index) => ({ id: String(index), left: left[index], right: right[index] }));
  }
  const byKey = (items: readonly unknown[]): Map<string, unknown> =>
    new Map(items.map((item) => [String(recordOf(item)?.[key]), item]));
  const [lefts, rights] = [byKey(left), byKey(right)];
  return merged([...lefts.keys()], [...rights.keys()]).map((id) => ({
    id,
    left: lefts.get(id),
    right: rights.get(id),
  }));
}

function isKey(items: readonly unknown[], field: string): boolean {
  const values = items.map((item) => recordOf(item)?.[field]);
  return values.every((value) => value !== undefined) && new Set(values).size === values.length;
}

/** Returns the union of two orders; what only the second one has comes after its predecessor there. */
function merged(left: readonly string[], right: readonly string[]): string[] {
  const all = [...left];
  right.forEach((name, index) => {
    if (all.includes(name)) return;
    const before = right[index - 1];
    all.splice(before === undefined ? 0 : all.indexOf(before) + 1, 0, name);
  });
  return all;
}

function fieldsOf(object: JsonObject | undefined): string[] {
  return Object.entries(object ?? {}).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

function recordOf(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function nameText(name: string): string {
  return /^[\w./-]+$/.test(name) ? name : JSON.stringify(name);
}

function valueText(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const text = value.includes("\n") ? JSON.stringify(value) : stringify(value, { lineWidth: 0 }).trimEnd();
  if (text.length <= LONGEST_VALUE) return text;
  return `${text.slice(0, LONGEST_VALUE)}… (${value.length} characters)`;
}

function hiddenText(value: unknown): string {
  return typeof value === "string" ? `(hidden, ${value.length} characters)` : "(hidden)";
}
