import { z } from "zod";
import { isLabelValue, labelKeyProblem, parseInteger, type Requirement, type Selector } from "./label-selector.ts";

/** A `NodeSelectorRequirement`; its operators include those of a `LabelSelectorRequirement`. */
export interface LabelExpression {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  readonly values?: readonly string[];
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly LabelExpression[];
}

const SET_OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"] as const;
// The API server's own rules, for schemas without code behind them.
const expressionRules = [
  {
    rule: "self.operator in ['Exists', 'DoesNotExist'] ? !has(self.values) || size(self.values) == 0 : has(self.values) && size(self.values) > 0",
    message: "In, NotIn, Gt and Lt need values; Exists and DoesNotExist take none",
  },
];

function expressionSchema(operator: z.ZodType<LabelExpression["operator"]>): z.ZodType<LabelExpression> {
  return z
    .strictObject({
      key: z.string().min(1).max(317),
      operator,
      values: z.array(z.string().max(63)).max(100).exactOptional(),
    })
    .meta({ "x-kubernetes-validations": expressionRules })
    .check(({ value, issues }) => {
      for (const message of expressionProblems(value)) issues.push({ code: "custom", message, input: value });
    });
}

export const nodeExpressionSchema: z.ZodType<LabelExpression> = expressionSchema(
  z.enum([...SET_OPERATORS, "Gt", "Lt"]),
);

/** A schema of `metav1.LabelSelector`; empty selects everything. */
export const labelSelectorSchema: z.ZodType<LabelSelector> = z.strictObject({
  matchLabels: z.record(z.string(), z.string().max(63)).exactOptional(),
  matchExpressions: z
    .array(expressionSchema(z.enum(SET_OPERATORS)))
    .max(100)
    .exactOptional(),
});

function expressionProblems({ key, operator, values = [] }: LabelExpression): string[] {
  const problems: string[] = [];
  const keyProblem = labelKeyProblem(key);
  if (keyProblem !== undefined) problems.push(`key ${JSON.stringify(key)} is no label key: ${keyProblem}`);
  if (operator === "Exists" || operator === "DoesNotExist") {
    if (values.length > 0) problems.push(`${operator} takes no values; remove them`);
    return problems;
  }
  if (operator === "Gt" || operator === "Lt") {
    if (values.length !== 1 || parseInteger(values[0] ?? "") === undefined) {
      problems.push(`${operator} takes one value, an integer in quotes`);
    }
    return problems;
  }
  if (values.length === 0) problems.push(`${operator} needs values`);
  for (const value of values) if (!isLabelValue(value)) problems.push(`${JSON.stringify(value)} is no label value`);
  return problems;
}

const OPERATORS: ReadonlySet<string> = new Set([...SET_OPERATORS, "Gt", "Lt"]);

/** Reports whether the operator is known. One of a later Kubernetes is left to the member's scheduler. */
export function isKnownExpression(expression: {
  readonly key: string;
  readonly operator: string;
}): expression is LabelExpression {
  return OPERATORS.has(expression.operator);
}

/** Returns the expression as a requirement. An invalid one matches nothing. */
export function requirementOf({ key, operator, values = [] }: LabelExpression): Requirement {
  switch (operator) {
    case "In":
    case "NotIn":
      return { key, operator, values };
    case "Exists":
    case "DoesNotExist":
      return { key, operator };
    case "Gt":
    case "Lt": {
      const bound = parseInteger(values[0] ?? "");
      if (bound === undefined) return { key, operator: "In", values: [] };
      return { key, operator: operator === "Gt" ? "GreaterThan" : "LessThan", bound };
    }
  }
}

export function selectorOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): Selector {
  const equal = Object.entries(matchLabels).map(
    ([key, value]): Requirement => ({ key, operator: "In", values: [value] }),
  );
  return [...equal, ...matchExpressions.map(requirementOf)];
}
