/** A requirement of a label selector. `=` and `==` are `In`, `!=` is `NotIn`. */
export type Requirement =
  | { readonly key: string; readonly operator: "Exists" | "DoesNotExist" }
  | { readonly key: string; readonly operator: "In" | "NotIn"; readonly values: readonly string[] }
  | { readonly key: string; readonly operator: "GreaterThan" | "LessThan"; readonly bound: bigint };

/** Requirements that must all hold; an empty list matches everything. */
export type Selector = readonly Requirement[];

/** A parsed selector, or the problem and its place, counted from 1. */
export type ParsedSelector =
  | { readonly ok: true; readonly selector: Selector }
  | { readonly ok: false; readonly message: string };

const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LONGEST_PREFIX = 253;
const INTEGER = /^[+-]?\d+$/;
// The range of Go's ParseInt(…, 64), with which the API server compares.
const INT64 = { least: -(2n ** 63n), most: 2n ** 63n - 1n } as const;

/**
 * Parses the string form of a label selector, the one that `kubectl get -l` takes: `region in (eu,us), gpu, !spot,
 * tier!=bronze, zone=a, generation>3`. Source of the grammar: k8s.io/apimachinery/pkg/labels.
 */
export function parseLabelSelector(text: string): ParsedSelector {
  const tokens = new Tokens(text);
  const selector: Requirement[] = [];
  if (tokens.peek() === "") return { ok: true, selector };
  for (;;) {
    const requirement = parseRequirement(tokens);
    if (typeof requirement === "string") return { ok: false, message: requirement };
    selector.push(requirement);
    const separator = tokens.next();
    if (separator.text === "") return { ok: true, selector };
    if (separator.text !== ",") return { ok: false, message: tokens.expected("a comma or the end", separator) };
  }
}

/** Reports whether labels meet every requirement. A missing label meets NotIn, as in Kubernetes. */
export function selectorMatches(selector: Selector, labels: Readonly<Record<string, string>>): boolean {
  return selector.every((requirement) => {
    const { key } = requirement;
    return holds(requirement, Object.hasOwn(labels, key) ? labels[key] : undefined);
  });
}

/** Reports whether a label's value meets a requirement. Undefined stands for a missing label. */
function holds(requirement: Requirement, value: string | undefined): boolean {
  switch (requirement.operator) {
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "In":
      return value !== undefined && requirement.values.includes(value);
    case "NotIn":
      return value === undefined || !requirement.values.includes(value);
    case "GreaterThan":
    case "LessThan": {
      const number = parseInteger(value ?? "");
      if (number === undefined) return false;
      return requirement.operator === "GreaterThan" ? number > requirement.bound : number < requirement.bound;
    }
  }
}

export function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf("/");
  if (!NAME.test(key.slice(slash + 1))) return "at most 63 of a-z, A-Z, 0-9, -, _ and ., not first or last -, _ or .";
  if (slash === -1) return undefined;
  const prefix = key.slice(0, slash);
  return prefix.length <= LONGEST_PREFIX && PREFIX.test(prefix) ? undefined : "its prefix must be a DNS name";
}

export function isLabelValue(text: string): boolean {
  return text === "" || NAME.test(text);
}

interface Token {
  /** Empty at the end of the text. */
  readonly text: string;
  readonly at: number;
}

/** Splits the text into tokens. Only ASCII white space separates, as in the API server's lexer. */
class Tokens {
  readonly #tokens: readonly Token[];
  readonly #end: number;
  #position = 0;

  constructor(text: string) {
    this.#tokens = Array.from(text.matchAll(/==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+/g), (match) => ({
      text: match[0],
      at: match.index,
    }));
    this.#end = text.length;
  }

  next(): Token {
    const token = this.#tokens[this.#position] ?? { text: "", at: this.#end };
    this.#position += 1;
    return token;
  }

  peek(): string {
    return this.#tokens[this.#position]?.text ?? "";
  }

  /** Returns the next token as a value, or empty text before a comma or the end, as Kubernetes does. */
  value(ends: readonly string[]): Token {
    return ends.includes(this.peek()) ? { text: "", at: 0 } : this.next();
  }

  expected(what: string, found: Token): string {
    const shown = found.text === "" ? "the end" : JSON.stringify(found.text.slice(0, 80));
    return `expected ${what} at character ${found.at + 1}, found ${shown}`;
  }
}

function parseRequirement(tokens: Tokens): Requirement | string {
  const first = tokens.next();
  const negated = first.text === "!";
  const name = negated ? tokens.next() : first;
  const problem = labelKeyProblem(name.text);
  if (problem !== undefined) return tokens.expected(`a label key (${problem})`, name);
  const { text: key } = name;
  if (negated) return { key, operator: "DoesNotExist" };
  if (tokens.peek() === "" || tokens.peek() === ",") return { key, operator: "Exists" };

  const operator = tokens.next();
  switch (operator.text) {
    case "in":
    case "notin": {
      const values = parseValues(tokens);
      if (typeof values === "string") return values;
      return { key, operator: operator.text === "in" ? "In" : "NotIn", values };
    }
    case "=":
    case "==":
    case "!=": {
      const value = tokens.value(["", ","]);
      if (!isLabelValue(value.text)) return tokens.expected("a label value", value);
      return { key, operator: operator.text === "!=" ? "NotIn" : "In", values: [value.text] };
    }
    case ">":
    case "<": {
      const value = tokens.next();
      const bound = isLabelValue(value.text) ? parseInteger(value.text) : undefined;
      if (bound === undefined) return tokens.expected("an integer", value);
      return { key, operator: operator.text === ">" ? "GreaterThan" : "LessThan", bound };
    }
    default:
      return tokens.expected("one of =, ==, !=, in, notin, >, < or a comma", operator);
  }
}

function parseValues(tokens: Tokens): readonly string[] | string {
  const opening = tokens.next();
  if (opening.text !== "(") return tokens.expected("(", opening);
  const values: string[] = [];
  for (;;) {
    const value = tokens.value([",", ")"]);
    if (value.text === "" && tokens.peek() === "") return tokens.expected("a value or )", tokens.next());
    if (!isLabelValue(value.text)) return tokens.expected("a label value", value);
    values.push(value.text);
    const separator = tokens.next();
    if (separator.text === ")") return values;
    if (separator.text !== ",") return tokens.expected("a comma or )", separator);
  }
}

/** Parses an integer as the API server does for `>` and `<`. */
export function parseInteger(text: string): bigint | undefined {
  if (!INTEGER.test(text)) return undefined;
  const number = BigInt(text.startsWith("+") ? text.slice(1) : text);
  return number >= INT64.least && number <= INT64.most ? number : undefined;
}
