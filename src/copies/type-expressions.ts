import type { AnyObject, DelegatedTypeSpec } from "../api/delegated-type.ts";
import { isJsonObject, type JsonObject, pathOfPointer, setAt, valueAt } from "../api/json.ts";
import type { Stored } from "../api/kubernetes.ts";
import { memoized } from "../api/memoized.ts";
import { CelMember, celValue, compile, type Evaluated, type Expression } from "./cel.ts";
import { withoutPointer } from "./field-paths.ts";
import { conditionsOf, type MemberCopy, statusOf } from "./object-status.ts";

/** The health of a copy, and why it is not known. */
export interface CopyHealth {
  readonly status?: string;
  readonly message?: string;
}

/** A status by the rules of its type, and why some of its fields are left out. */
export interface RuledStatus {
  readonly status: JsonObject;
  readonly problems: readonly string[];
}

export interface TypeExpressions {
  /** The problems of compilation, by field, line and column. */
  readonly problems: readonly string[];
  /** Returns a copy's health by `spec.health`, or else by its condition Ready or Available. */
  healthOf(copy: Stored<AnyObject>): CopyHealth;
  /** Reports whether a copy has done work that another member would do again, by `spec.queue.begun`. */
  hasBegun(copy: Stored<AnyObject>): boolean;
  /** Returns how many pods each template of an object has while it runs, by `spec.queue.pods`. Empty if it is not known. */
  podCounts(object: Stored<AnyObject>): readonly number[];
  /** Sets the fields of `spec.status` in the status that an object has from its copies. */
  statusOf(status: JsonObject, holders: readonly MemberCopy[]): RuledStatus;
}

/** The values of a type's rules for the copies of one object. */
interface RuleValues {
  readonly holders: readonly MemberCopy[];
  readonly values: readonly { readonly path: string; readonly value: unknown }[];
  readonly problems: readonly string[];
}

interface StatusRule {
  readonly path: string;
  /** The rule, in messages. */
  readonly name: string;
  readonly expression: ReturnType<typeof compile>;
}

export function compileExpressions({
  health,
  status = [],
  queue,
}: Pick<DelegatedTypeSpec, "health" | "status" | "queue">): TypeExpressions {
  const judge = health === undefined ? undefined : compile(health, "health");
  const begun = queue?.begun === undefined ? undefined : compile(queue.begun, "health");
  const pods = queue?.pods === undefined ? undefined : compile(queue.pods, "health");
  const rules = status.map(({ path, value }, index) => ({
    path,
    name: `spec.status[${index}] (${path})`,
    expression: compile(value, "status"),
  }));
  const healthOf = memoized((copy: Stored<AnyObject>) =>
    judge === undefined ? conditionHealth(copy) : judgedHealth(copy, judge),
  );
  const evaluations = new WeakMap<Stored<AnyObject>, RuleValues>();
  const problemsOf = (name: string, expression: typeof judge): string[] =>
    expression !== undefined && "problem" in expression ? [`${name}: ${expression.problem}`] : [];
  return {
    problems: [
      ...problemsOf("spec.health", judge),
      ...problemsOf("spec.queue.begun", begun),
      ...problemsOf("spec.queue.pods", pods),
      ...rules.flatMap(({ name, expression }) => problemsOf(name, expression)),
    ],
    healthOf,
    hasBegun: (copy) => {
      if (begun === undefined || "problem" in begun) return true;
      const result = evaluated(begun, () => ({ object: celValue(plain(copy)) }));
      return !("value" in result) || result.value !== false;
    },
    podCounts: (object) => {
      if (pods === undefined || "problem" in pods) return [];
      return numbersIn(evaluated(pods, () => ({ object: celValue(plain(object)) })));
    },
    statusOf: (status, holders) => {
      if (rules.length === 0) return { status, problems: [] };
      // Each copy is of one object. Rules are costly, and objects are reconciled for other reasons, too.
      const copy = holders.find((holder) => holder.copy !== undefined)?.copy;
      const before = copy && evaluations.get(copy);
      const found = before !== undefined && isSame(before.holders, holders) ? before : valuesOf(rules, holders);
      if (copy !== undefined) evaluations.set(copy, found);
      return ruled(status, found);
    },
  };
}

function conditionHealth(copy: Stored<AnyObject>): CopyHealth {
  const conditions = conditionsOf(statusOf(copy)) ?? [];
  const ofType = (type: string): JsonObject | undefined => conditions.find((one) => one.type === type);
  const status = (ofType("Ready") ?? ofType("Available"))?.status;
  return typeof status === "string" ? { status } : {};
}

function judgedHealth(copy: Stored<AnyObject>, judge: ReturnType<typeof compile>): CopyHealth {
  const unknown = (why: string): CopyHealth => ({ status: "Unknown", message: `spec.health: ${why}` });
  if ("problem" in judge) return unknown(judge.problem);
  const result = evaluated(judge, () => ({ object: celValue(plain(copy)) }));
  if ("problem" in result) {
    // A new copy has no status until its controller has seen it.
    return result.isMissing && statusOf(copy) === undefined ? {} : unknown(result.problem);
  }
  const { value } = result;
  if (typeof value === "boolean") return { status: value ? "True" : "False" };
  if (value === "True" || value === "False" || value === "Unknown") return { status: value };
  return unknown(
    `it is ${JSON.stringify(value)}; write an expression that is true, false, "True", "False" or "Unknown"`,
  );
}

function numbersIn(result: Evaluated): readonly number[] {
  const list = "value" in result && Array.isArray(result.value) ? result.value : [];
  return list.map((one) => (typeof one === "number" ? Math.max(0, one) : 0));
}

function isSame(some: readonly MemberCopy[], others: readonly MemberCopy[]): boolean {
  return (
    some.length === others.length &&
    some.every(({ member, copy, isLost }, index) => {
      const other = others[index];
      return member === other?.member && copy === other.copy && isLost === other.isLost;
    })
  );
}

function ruled(status: JsonObject, { values, problems }: RuleValues): RuledStatus {
  let fields = status;
  for (const { path, value } of values) {
    // Paths begin with the field `status` itself.
    fields =
      value === undefined
        ? withoutPointer({ status: fields }, path).status
        : setAt({ status: fields }, pathOfPointer(path), value).status;
  }
  return { status: fields, problems };
}

function valuesOf(rules: readonly StatusRule[], holders: readonly MemberCopy[]): RuleValues {
  const sorted = holders.toSorted((a, b) => (a.member < b.member ? -1 : 1));
  const copies = sorted.map(({ member, isLost, copy }) => ({
    ...{ name: member, ready: !isLost },
    object: copy === undefined ? {} : plain(copy),
  }));
  // A member that has not reported yet lacks fields that it will have.
  const haveAllReported = sorted.every(({ copy }) => statusOf(copy) !== undefined);
  let members: readonly CelMember[] | undefined;
  const problems: string[] = [];
  const found = rules.map(({ path, name, expression }) => {
    const pointer = pathOfPointer(path);
    let value: unknown;
    if (!("problem" in expression)) {
      const result = evaluated(expression, () => {
        members ??= copies.map((copy) => new CelMember(copy));
        const values = copies.map(({ object }) => valueAt(object, pointer) ?? null).filter((one) => one !== null);
        return { members, values: celValue(values) };
      });
      if ("value" in result) value = result.value ?? undefined;
      else if (haveAllReported || !result.isMissing) problems.push(`${name}: ${result.problem}`);
    }
    return { path, value };
  });
  return { holders, values: found, problems };
}

function evaluated(expression: Expression, variables: () => Parameters<Expression>[0]): Evaluated {
  try {
    return expression(variables());
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error), isMissing: false };
  }
}

/** Returns a copy without managedFields, which are larger than the rest. */
function plain(copy: Stored<AnyObject>): JsonObject {
  const { metadata, ...fields } = copy;
  const { managedFields: _, ...rest } = isJsonObject(metadata) ? metadata : {};
  return { ...fields, metadata: rest };
}
