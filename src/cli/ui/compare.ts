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
  /** Hides the values of these top-level fields, which is where Secrets have them. */
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
  const budget = new Budget();
  const slice = new TimeSlice(signal);
  const context = { hidden, isHidden: false, depth: 0, budget };
  const steps = linesOfFields(left, right, { indent: "", path: "", context });
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) if (slice.due) await slice.next();
  const lines = step.value;
  if (!budget.isSpent) return lines;
  const rest = { ...(left === undefined ? {} : { left: REST }), ...(right === undefined ? {} : { right: REST }) };
  return [...lines, { path: "", ...rest, differs: true }];
}

/** The lines and characters that a comparison may still have. */
class Budget {
  isSpent = false;
  #lines = MOST_LINES;
  #characters = MOST_CHARACTERS;

  /** Returns the line, or nothing when there is no more room. */
  take(line: ComparedLine): ComparedLine[] {
    const { path, left = "", right = "" } = line;
    this.#lines -= 1;
    this.#characters -= path.length + left.length + right.length;
    this.isSpent ||= this.#lines < 0 || this.#characters < 0;
    return this.isSpent ? [] : [line];
  }
}

/** A comparison that pauses after each value. */
type Steps = Generator<undefined, ComparedLine[]>;

interface Context {
  readonly hidden: ReadonlySet<string>;
  readonly isHidden: boolean;
  readonly depth: number;
  readonly budget: Budget;
}

function* linesOfFields(
  left: JsonObject | undefined,
  right: JsonObject | undefined,
  { indent, path, context }: Omit<Place, "label">,
): Steps {
  const lines: ComparedLine[] = [];
  for (const name of merged(fieldsOf(left), fieldsOf(right))) {
    if (context.budget.isSpent) break;
    const of = yield* linesOfValue(left?.[name], right?.[name], {
      label: `${nameText(name)}:`,
      indent,
      path: path === "" ? cut(name) : `${path}.${cut(name)}`,
      context: { ...context, isHidden: context.isHidden || (path === "" && context.hidden.has(name)) },
    });
    for (const line of of) lines.push(line);
  }
  return lines;
}

interface Place {
  /** `spec:`, or nothing for an item of a list. */
  readonly label: string;
  readonly indent: string;
  readonly path: string;
  readonly context: Context;
}

function* linesOfValue(left: unknown, right: unknown, place: Place): Steps {
  yield;
  const { label, indent, path } = place;
  const context = { ...place.context, depth: place.context.depth + 1 };
  const { budget } = context;
  const kinds = [left, right].flatMap((value) => (value === undefined ? [] : kindOf(value)));
  const [kind] = context.depth < DEEPEST ? kinds : [];
  if (kind !== undefined && kinds.some((other) => other !== kind)) {
    const lines = yield* linesOfValue(left, undefined, place);
    return lines.concat(yield* linesOfValue(undefined, right, place));
  }
  if (kind === "fields") {
    const first = label === "" ? [] : budget.take(head(left, right, place));
    const within = { indent: `${indent}  `, path, context };
    return first.concat(yield* linesOfFields(recordOf(left), recordOf(right), within));
  }
  if (kind === "list") {
    const lines = label === "" ? [] : budget.take(head(left, right, place));
    // An item that is a list itself begins behind the dash of its place.
    const own = label === "" ? `${indent}  ` : indent;
    for (const { id, left: one, right: other } of pairsOf(listOf(left), listOf(right))) {
      if (budget.isSpent) break;
      const item = yield* linesOfValue(one, other, { label: "", indent: own, path: `${path}[${cut(id)}]`, context });
      for (const line of dashed(item, own)) lines.push(line);
    }
    return lines;
  }
  const text = (value: unknown): string =>
    `${indent}${label === "" ? "  " : `${label} `}${context.isHidden ? hiddenText(value) : valueText(value)}`;
  return budget.take({
    path,
    ...(left === undefined ? {} : { left: text(left) }),
    ...(right === undefined ? {} : { right: text(right) }),
    differs: !isSame(left, right),
  });
}

/** Returns how a value is written: its fields or items on lines of their own, or on the line of its label. */
function kindOf(value: unknown): "fields" | "list" | "line" {
  if (Array.isArray(value)) return value.length > 0 ? "list" : "line";
  return isJsonObject(value) && Object.keys(value).length > 0 ? "fields" : "line";
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
  return merged(enough([...lefts.keys()]), enough([...rights.keys()])).map((id) => ({
    id,
    left: lefts.get(id),
    right: rights.get(id),
  }));
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

function fieldsOf(object: JsonObject | undefined): readonly string[] {
  return enough(Object.keys(object ?? {}).filter((name) => object?.[name] !== undefined));
}

/** Returns as many names as there may be lines; the next one spends the budget. */
function enough(names: readonly string[]): readonly string[] {
  return names.slice(0, MOST_LINES + 1);
}

function recordOf(value: unknown): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function nameText(name: string): string {
  return cut(/^[\w./-]+$/.test(name) ? name : JSON.stringify(name), name.length);
}

function valueText(value: unknown): string {
  if (typeof value !== "string") return cut(jsonOf(value));
  if (value.includes("\n") || value.length > LONGEST_VALUE) return cut(JSON.stringify(value), value.length);
  return cut(stringify(value, { lineWidth: 0 }).trimEnd(), value.length);
}

function cut(text: string, length: number = text.length): string {
  return text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE)}… (${length} characters)`;
}

function isSame(left: unknown, right: unknown): boolean {
  try {
    return JSON.stringify(left) === JSON.stringify(right);
  } catch {
    return false;
  }
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    // Values of some thousand levels exceed the stack.
    return "(too deep to show)";
  }
}

function hiddenText(value: unknown): string {
  return typeof value === "string" ? `(hidden, ${value.length} characters)` : "(hidden)";
}
