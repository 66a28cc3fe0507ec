/** One requirement of a label selector. */
export type Requirement =
  | { readonly key: string; readonly operator: "Exists" | "DoesNotExist" }
  | { readonly key: string; readonly operator: "In" | "NotIn"; readonly values: readonly string[] };

/** All requirements must hold. */
export type LabelSelector = readonly Requirement[];

/** A parsed selector, or what is wrong with the text and where (0-based). */
export type ParsedSelector =
  | { readonly ok: true; readonly selector: LabelSelector }
  | { readonly ok: false; readonly message: string };

type Token = { readonly text: string; readonly at: number };

const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Parses the string form of a label selector, the one that `kubectl get -l` takes: `region in (eu,us), gpu, tier!=bronze,
 * !spot, zone=a`. Source: k8s.io/apimachinery/pkg/labels.
 */
export function parseLabelSelector(text: string): ParsedSelector {
  const tokens = tokenize(text);
  if (tokens.length === 0) return { ok: true, selector: [] };
  const requirements: Requirement[] = [];
  let position = 0;
  const next = (): Token => tokens[position++] ?? { text: "", at: text.length };
  const peek = (): string => tokens[position]?.text ?? "";
  const fail = (token: Token, expected: string): ParsedSelector => ({
    ok: false,
    message: `expected ${expected} at character ${token.at + 1}, found ${token.text === "" ? "the end" : JSON.stringify(token.text)}`,
  });

  for (;;) {
    const first = next();
    const negated = first.text === "!";
    const key = negated ? next() : first;
    const keyProblem = labelKeyProblem(key.text);
    if (keyProblem !== undefined) return fail(key, `a label key (${keyProblem})`);
    if (negated) {
      requirements.push({ key: key.text, operator: "DoesNotExist" });
    } else if (peek() === "" || peek() === ",") {
      requirements.push({ key: key.text, operator: "Exists" });
    } else {
      const operator = next();
      if (operator.text === "in" || operator.text === "notin") {
        const opening = next();
        if (opening.text !== "(") return fail(opening, "(");
        const values: string[] = [];
        for (;;) {
          // An empty place between commas is the empty value, as in the API's own parser.
          const value = peek() === "," || peek() === ")" ? { text: "", at: 0 } : next();
          if (!isLabelValue(value.text)) return fail(value, "a label value");
          values.push(value.text);
          const separator = next();
          if (separator.text === ")") break;
          if (separator.text !== ",") return fail(separator, ", or )");
        }
        requirements.push({ key: key.text, operator: operator.text === "in" ? "In" : "NotIn", values });
      } else if (operator.text === "=" || operator.text === "==" || operator.text === "!=") {
        const value = peek() === "," || peek() === "" ? { text: "", at: 0 } : next();
        if (!isLabelValue(value.text)) return fail(value, "a label value");
        requirements.push({ key: key.text, operator: operator.text === "!=" ? "NotIn" : "In", values: [value.text] });
      } else {
        return fail(operator, "one of =, ==, !=, in, notin, or a comma");
      }
    }
    if (peek() === "") return { ok: true, selector: requirements };
    const comma = next();
    if (comma.text !== ",") return fail(comma, "a comma");
  }
}

/** Whether labels meet every requirement. A missing label meets NotIn, as in Kubernetes. */
export function selectorMatches(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  return selector.every((requirement) => {
    const value = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
    if (!("values" in requirement)) return (requirement.operator === "Exists") === (value !== undefined);
    const listed = value !== undefined && requirement.values.includes(value);
    return requirement.operator === "In" ? listed : !listed;
  });
}

/** Why the text is no label key; undefined when it is one. */
export function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf("/");
  const name = key.slice(slash + 1);
  if (!NAME.test(name)) return "letters, digits, - _ . between letters or digits, at most 63";
  if (slash === -1) return undefined;
  const prefix = key.slice(0, slash);
  return prefix.length <= 253 && PREFIX.test(prefix) ? undefined : "its prefix must be a DNS name";
}

/** Whether the text may stand as a label's value; the empty text may. */
export function isLabelValue(text: string): boolean {
  return text === "" || NAME.test(text);
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  for (const match of text.matchAll(/==|!=|[=!(),]|[^\s=!(),]+/g)) tokens.push({ text: match[0], at: match.index });
  return tokens;
}
