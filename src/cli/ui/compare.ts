import { stringify } from "yaml";
import { isJsonObject, type JsonObject } from "../../api/json.ts";
import { TimeSlice } from "../../kube/event-loop.ts";

/** A line of two objects side by side, as YAML. An object without the field has no text. */
export interface ComparedLine {
  readonly path: string;
  readonly left?: string;
  readonly right?: string;
  readonly differs: boolean;
}

export interface CompareOptions {
  /** Ends the comparison. */
  readonly signal: AbortSignal;
  /** Hides the values of the fields with these paths, such as `data`. */
  readonly hidden?: ReadonlySet<string>;
}

// Annotations may hold whole manifests.
const LONGEST_VALUE = 160;
// Bounds of what a member makes this process, which has other users, compute and send.
const MOST_LINES = 20_000;
const MOST_CHARACTERS = 4_000_000;
const DEEPEST = 64;
const REST = "# the rest is not shown, and may differ";
// Fields that identify the items of Kubernetes' lists. The first one that all items have, each its own value, pairs them.
const ITEM_KEYS = ["name", "type", "mountPath", "containerPort", "port", "uid", "ip", "key"];

/**
 * Returns the lines of two objects in step, so that equal fields share a line. Items of lists are paired by their keys. Yields to
 * the event loop in between. Rejects with the signal's reason.
 */
export async function compareObjects(
  left: JsonObject | undefined,
  right: JsonObject | undefined,
  { signal, hidden = new Set() }: CompareOptions,
): Promise<ComparedLine[]> {
  const slice = new TimeSlice(signal);
  const lines: ComparedLine[] = [];
  let characters = 0;
  for (const line of linesOfFields(left, right, { indent: "", path: "", depth: 0, hidden, isHidden: false })) {
    characters += line.path.length + (line.left?.length ?? 0) + (line.right?.length ?? 0);
    if (lines.length === MOST_LINES || characters > MOST_CHARACTERS) {
      return [...lines, { path: "", ...sides(left, right, () => REST), differs: true }];
    }
    lines.push(line);
    if (slice.due) await slice.next();
  }
  return lines;
}

/** Lines are made as they are asked for, and no more of them. */
type Lines = Generator<ComparedLine, void>;

interface Place {
  /** `spec:`, or nothing for an item of a list. */
  readonly label: string;
  readonly indent: string;
  readonly path: string;
  readonly depth: number;
  /** Paths of fields whose values are hidden. */
  readonly hidden: ReadonlySet<string>;
  readonly isHidden: boolean;
}

function* linesOfFields(
  left: JsonObject | undefined,
  right: JsonObject | undefined,
  { path, depth, ...place }: Omit<Place, "label">,
): Lines {
  for (const name of merged(fieldsOf(left), fieldsOf(right))) {
    const own = path === "" ? cut(name) : `${path}.${cut(name)}`;
    yield* linesOfValue(left?.[name], right?.[name], {
      ...place,
      label: `${nameText(name)}:`,
      path: own,
      depth: depth + 1,
      isHidden: place.isHidden || place.hidden.has(own),
    });
  }
}

function* linesOfValue(left: unknown, right: unknown, place: Place): Lines {
  const { label, indent, path, depth, isHidden } = place;
  const values = depth < DEEPEST ? [left, right] : [];
  const kinds = values.flatMap((value) => (value === undefined ? [] : kindOf(value)));
  const [kind = "line"] = kinds;
  if (kinds.some((other) => other !== kind)) {
    yield* linesOfValue(left, undefined, place);
    yield* linesOfValue(undefined, right, place);
    return;
  }
  if (kind === "line") {
    const shown = isHidden ? hiddenText : valueText;
    const text = (value: unknown): string => `${indent}${label === "" ? " " : label} ${shown(value)}`;
    const [one, other] = [jsonOf(left), jsonOf(right)];
    yield { path, ...sides(left, right, text), differs: one === undefined || one !== other };
    return;
  }
  if (label !== "") {
    const text = `${indent}${label}`;
    yield { path, ...sides(left, right, () => text), differs: (left === undefined) !== (right === undefined) };
  }
  if (kind === "fields") {
    yield* linesOfFields(recordOf(left), recordOf(right), { ...place, indent: `${indent}  ` });
    return;
  }
  // An item that is a list itself begins behind the dash of its place.
  const own = label === "" ? `${indent}  ` : indent;
  for (const [id, one, other] of pairsOf(listOf(left), listOf(right))) {
    const item = { ...place, label: "", indent: own, path: `${path}[${cut(id)}]`, depth: depth + 1 };
    yield* dashed(linesOfValue(one, other, item), own);
  }
}

/** Returns the text of each side that has a value. */
function sides(left: unknown, right: unknown, text: (value: unknown) => string): Pick<ComparedLine, "left" | "right"> {
  return {
    ...(left === undefined ? {} : { left: text(left) }),
    ...(right === undefined ? {} : { right: text(right) }),
  };
}

/** Returns how a value is written: its fields or items on lines of their own, or on the line of its label. */
function kindOf(value: unknown): "fields" | "list" | "line" {
  if (Array.isArray(value)) return value.length > 0 ? "list" : "line";
  return isJsonObject(value) && Object.keys(value).length > 0 ? "fields" : "line";
}

/** Writes the dash of a list's item into its first line on each side. */
function* dashed(lines: Lines, indent: string): Lines {
  const dash = (text: string): string => `${indent}- ${text.slice(indent.length + 2)}`;
  let [isLeftDue, isRightDue] = [true, true];
  for (const { left, right, ...line } of lines) {
    yield {
      ...line,
      ...(left === undefined ? {} : { left: isLeftDue ? dash(left) : left }),
      ...(right === undefined ? {} : { right: isRightDue ? dash(right) : right }),
    };
    isLeftDue &&= left === undefined;
    isRightDue &&= right === undefined;
  }
}

/** Pairs the items of two lists by their keys, else by their places. */
function pairsOf(left: readonly unknown[], right: readonly unknown[]): (readonly [id: string, unknown, unknown])[] {
  const key = ITEM_KEYS.find((field) => isKey(left, field) && isKey(right, field));
  const byId = (items: readonly unknown[]): Map<string, unknown> =>
    new Map(items.map((item, index) => [String(key === undefined ? index : recordOf(item)?.[key]), item]));
  const [lefts, rights] = [byId(left), byId(right)];
  return merged([...lefts.keys()], [...rights.keys()]).map((id) => [id, lefts.get(id), rights.get(id)]);
}

function isKey(items: readonly unknown[], field: string): boolean {
  const values = items.map((item) => recordOf(item)?.[field]);
  const isPlain = values.every((value) => typeof value === "string" || typeof value === "number");
  return isPlain && new Set(values.map(String)).size === values.length;
}

/** Returns the union of two orders; what only the second one has comes after its predecessor there. */
function merged(left: readonly string[], right: readonly string[]): string[] {
  const followers = new Map<string | undefined, string[]>([undefined, ...left].map((name) => [name, []]));
  let last = followers.get(undefined);
  for (const name of right) {
    const own = followers.get(name);
    if (own === undefined) last?.push(name);
    else last = own;
  }
  return [...followers].flatMap(([name, after]) => (name === undefined ? after : [name, ...after]));
}

// The comparison looks at no more fields or items than it may have lines; the next one ends it.
const ENOUGH = MOST_LINES + 1;

function fieldsOf(object: JsonObject = {}): string[] {
  const names = Object.keys(object).slice(0, ENOUGH);
  return names.filter((name) => object[name] !== undefined);
}

function recordOf(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, ENOUGH) : [];
}

function nameText(name: string): string {
  return cut(/^[\w./-]+$/.test(name) ? name : JSON.stringify(name), name.length);
}

function valueText(value: unknown): string {
  if (typeof value !== "string") return cut(jsonOf(value) ?? "(too deep to show)");
  if (value.includes("\n") || value.length > LONGEST_VALUE) return cut(JSON.stringify(value), value.length);
  return cut(stringify(value, { lineWidth: 0 }).trimEnd(), value.length);
}

function cut(text: string, length: number = text.length): string {
  return text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE)}… (${length} characters)`;
}

/** Returns a value as JSON. Undefined without one, or if it has some thousand levels, which exceed the stack. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function hiddenText(value: unknown): string {
  return typeof value === "string" ? `(hidden, ${value.length} characters)` : "(hidden)";
}
