import {
  TypeError as CelTypeError,
  type Context,
  Environment,
  EvaluationError,
  Optional,
  ParseError,
} from "@marcbachmann/cel-js";
import { isJsonObject, type JsonObject, sortedKeys } from "../api/json.ts";

/** The result of an expression: a JSON value, undefined for an optional without one, or why there is none. */
export type Evaluated =
  | { readonly value: unknown }
  /** `isMissing`: a field that the expression names is not there. */
  | { readonly problem: string; readonly isMissing: boolean };

/** A compiled expression. Values of variables come from `celValue`. */
export type Expression = (variables: Context) => Evaluated;

/** `health`: over `object`. `status`: over the lists `members`, of `CelMember`, and `values`. */
export type ExpressionUse = "health" | "status";

// An operator's mistake may not stop the controller. A hundred thousand steps take some milliseconds.
const MAX_STEPS = 100_000;
const MAX_VALUES = 500_000;
// A function's cost grows with the length of its arguments.
const CHARACTERS_PER_STEP = 32;
const ITEMS_PER_STEP = 8;
const LIMITS = { maxAstNodes: 500, maxDepth: 50 };
const TOO_COSTLY = new Error(`takes more than ${MAX_STEPS} steps: use fewer loops in loops`);

interface Evaluator {
  run: (node: object, context: unknown) => unknown;
}

export class CelMember {
  readonly name: string;
  readonly ready: boolean;
  readonly object: unknown;

  /** Throws an Error if the copy is too large. */
  constructor({
    name,
    ready,
    object,
  }: { readonly name: string; readonly ready: boolean; readonly object: JsonObject }) {
    this.name = name;
    this.ready = ready;
    this.object = celValue(object);
  }
}

let stepsLeft = 0;
/** Nodes whose values `==`, `!=` or `in` compares deeply. */
const compared = new WeakSet<object>();

const ENVIRONMENTS: Readonly<Record<ExpressionUse, Environment>> = {
  health: bounded(environment().registerVariable("object", "map")),
  status: bounded(
    environment()
      .registerType("Member", { ctor: CelMember, fields: { name: "string", ready: "bool", object: "map" } })
      .registerVariable("members", "list<Member>")
      .registerVariable("values", "list<dyn>"),
  ),
};

/** Compiles an expression and checks its types. Returns what is wrong, with line and column. */
export function compile(text: string, subject: ExpressionUse): Expression | { readonly problem: string } {
  try {
    const parsed = ENVIRONMENTS[subject].parse(text);
    const { error } = parsed.check();
    if (error !== undefined) return { problem: problemOf(error, text) };
    for (const { op, args, start } of nodesIn(parsed.ast)) {
      const missing = op === "rcall" && Array.isArray(args) ? unavailable(args) : undefined;
      if (missing !== undefined) return { problem: `${positionIn(text, start)}: ${missing}` };
      if (op === "==" || op === "!=" || op === "in") for (const operand of nodesIn(args)) compared.add(operand.node);
    }
    return (variables) => evaluate(() => parsed(variables), text);
  } catch (error) {
    return { problem: problemOf(error, text) };
  }
}

/** Returns why a method is not available. Takes its name, the receiver and the arguments. */
function unavailable([name, , args]: readonly unknown[]): string | undefined {
  // A pattern may take exponential time.
  if (name === "matches") return "matches() is not available: use startsWith, contains or split";
  // A time zone takes a thousand times as long as any other step.
  const hasZone = typeof name === "string" && name.startsWith("get") && Array.isArray(args) && args.length > 0;
  return hasZone ? `${name}() takes no time zone: times are in UTC` : undefined;
}

function evaluate(run: () => unknown, text: string): Evaluated {
  stepsLeft = MAX_STEPS;
  try {
    const value = run();
    // Quantifiers and logical operators pass over errors.
    if (stepsLeft < 0) throw TOO_COSTLY;
    return { value: jsonValue(value) };
  } catch (error) {
    const isMissing = error instanceof EvaluationError && error.code === "no_such_key";
    return { problem: problemOf(error, text), isMissing };
  }
}

/** Returns a JSON value as CEL has it, with integers. Throws an Error if it is too large. */
export function celValue(json: unknown): unknown {
  let left = MAX_VALUES;
  const convert = (value: unknown): unknown => {
    if (--left < 0) throw new Error(`the objects have more than ${MAX_VALUES} values`);
    if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
    if (Array.isArray(value)) return value.map(convert);
    if (!isJsonObject(value)) return value;
    if (JSON.isRawJSON(value)) return BigInt(JSON.stringify(value));
    // Keys of a Map cannot be taken for methods of an object.
    return new Map(Object.entries(value).map(([key, part]) => [key, convert(part)]));
  };
  return convert(json);
}

function jsonValue(value: unknown): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) return Number(value);
  if (value instanceof Optional) return value.hasValue() ? jsonValue(value.value()) : undefined;
  if (value instanceof Date) return value.toISOString().replace(/\.000Z$/, "Z");
  if (Array.isArray(value)) return value.map(jsonValue);
  if (value instanceof Map) return jsonObject([...value]);
  if (isJsonObject(value) && Object.getPrototypeOf(value) === Object.prototype)
    return jsonObject(Object.entries(value));
  throw new Error("yields a value that JSON does not have: convert it by string()");
}

function jsonObject(entries: readonly (readonly [unknown, unknown])[]): object {
  return Object.fromEntries(entries.map(([key, value]) => [String(key), jsonValue(value)]));
}

/** Returns an environment with the functions of lists that cel-go adds to the language (ext/lists.go). */
function environment(): Environment {
  return new Environment({ enableOptionalTypes: true, homogeneousAggregateLiterals: false, limits: LIMITS })
    .registerFunction("list.flatten(): list", (list: readonly unknown[]) => list.flat())
    .registerFunction("list.distinct(): list", distinct);
}

function distinct(list: readonly unknown[]): unknown[] {
  stepsLeft -= sizeOf(list, stepsLeft);
  if (stepsLeft < 0) throw TOO_COSTLY;
  return [...new Map(list.map((item) => [JSON.stringify(jsonValue(item), sortedKeys), item])).values()];
}

/** Counts the steps of an environment's expressions, which the library does not: it gives its evaluator to macros. */
function bounded(env: Environment): Environment {
  const macro = () => ({
    typeCheck: (checker: { getType(name: string): unknown }) => checker.getType("bool"),
    evaluate: (evaluator: Evaluator) => {
      const run = evaluator.run.bind(evaluator);
      evaluator.run = (node, context) => {
        if (--stepsLeft < 0) throw TOO_COSTLY;
        const value = run(node, context);
        stepsLeft -= costOf(node, value);
        return value;
      };
      return true;
    },
  });
  env.registerFunction("countSteps(ast): bool", macro).evaluate("countSteps(true)");
  return env;
}

function costOf(node: object, value: unknown): number {
  if (typeof value === "string") return Math.trunc(value.length / CHARACTERS_PER_STEP);
  if (typeof value !== "object" || value === null) return 0;
  if (compared.has(node)) return sizeOf(value, stepsLeft);
  // A list that a macro makes is paid for item by item.
  const isMade = "op" in node && (node.op === "accuPush" || node.op === "accuValue");
  return Array.isArray(value) && !isMade ? Math.trunc(value.length / ITEMS_PER_STEP) : 0;
}

/** Counts the parts of a value, up to a little more than `most`. */
function sizeOf(value: unknown, most: number): number {
  if (typeof value === "string") return 1 + value.length / CHARACTERS_PER_STEP;
  const parts =
    Array.isArray(value) || value instanceof Map ? value.values() : isJsonObject(value) ? Object.values(value) : [];
  let size = 1;
  for (const part of parts) {
    if (size > most) break;
    size += sizeOf(part, most - size);
  }
  return size;
}

interface Node {
  readonly node: object;
  readonly op: string;
  readonly args: unknown;
  readonly start: number;
}

function nodesIn(value: unknown): Node[] {
  if (Array.isArray(value)) return value.flatMap(nodesIn);
  if (!isJsonObject(value) || typeof value.op !== "string" || typeof value.start !== "number") return [];
  const { op, args, start } = value;
  return [{ node: value, op, args, start }, ...nodesIn(args)];
}

function problemOf(error: unknown, text: string): string {
  if (error instanceof ParseError || error instanceof CelTypeError || error instanceof EvaluationError) {
    return error.range === undefined ? error.summary : `${positionIn(text, error.range.start)}: ${error.summary}`;
  }
  return error instanceof Error ? error.message : String(error);
}

function positionIn(text: string, offset: number): string {
  const lines = text.slice(0, offset).split("\n");
  return `line ${lines.length}, column ${(lines.at(-1) ?? "").length + 1}`;
}
