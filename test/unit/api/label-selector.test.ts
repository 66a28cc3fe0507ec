import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseLabelSelector, type Selector, selectorMatches } from "../../../src/api/label-selector.ts";

type Labels = Readonly<Record<string, string>>;

function matches(text: string, labels: Labels): boolean {
  const parsed = parseLabelSelector(text);
  if (!parsed.ok) throw new Error(parsed.message);
  return selectorMatches(parsed.selector, labels);
}

describe("selectorMatches agrees with kubectl get -l", () => {
  test.each<[string, Labels, boolean]>([
    ["", {}, true],
    ["  ", { a: "b" }, true],
    ["region", { region: "" }, true],
    ["region", {}, false],
    ["!region", {}, true],
    ["!region", { region: "eu" }, false],
    ["region=eu", { region: "eu" }, true],
    ["region==eu", { region: "eu" }, true],
    ["region = eu", { region: "us" }, false],
    ["region=", { region: "" }, true],
    ["region=", {}, false],
    ["region!=eu", {}, true],
    ["region!=eu", { region: "eu" }, false],
    ["region!=", { region: "" }, false],
    ["region in (eu,us)", { region: "us" }, true],
    ["region in (eu, us)", {}, false],
    ["region notin (eu)", {}, true],
    ["region notin (eu)", { region: "eu" }, false],
    ["region in ()", { region: "" }, true],
    ["region in (,eu)", { region: "" }, true],
    ["region in (eu,)", { region: "" }, true],
    ["region\tin\n(eu)", { region: "eu" }, true],
    ["in in (in,notin)", { in: "notin" }, true],
    ["notin=in", { notin: "in" }, true],
    ["a,b", { a: "1", b: "2" }, true],
    ["a,b", { a: "1" }, false],
    ["size>3", { size: "4" }, true],
    ["size>3", { size: "3" }, false],
    ["size > 3", {}, false],
    ["size>3", { size: "big" }, false],
    ["example.com/gpu=a100", { "example.com/gpu": "a100" }, true],
    ["constructor", {}, false],
  ])("%j on %j: %j", (text, labels, expected) => {
    expect(matches(text, labels)).toBe(expected);
  });
});

describe("parseLabelSelector reports the place and what was expected", () => {
  test.each([
    ["region=eu us", "expected a comma or the end at character 11"],
    ["region in eu", "expected ( at character 11"],
    ["region in (eu", "expected a comma or ) at character 14"],
    ["region in (", "expected a value or ) at character 12"],
    ["region in (eu us)", "expected a comma or ) at character 15"],
    ["region=eu,", "expected a label key"],
    [",region", "expected a label key"],
    ["!", "expected a label key"],
    ["!!a", "expected a label key"],
    ["!region=eu", "expected a comma or the end at character 8"],
    ["region===eu", "expected a label value at character 9"],
    ["region=-eu", "expected a label value at character 8"],
    [`region=${"x".repeat(64)}`, "expected a label value"],
    ["-region", "expected a label key"],
    ["a/b/c", "expected a label key"],
    ["UPPER.example/a", "its prefix must be a DNS name"],
    ["region ! eu", "expected one of =, ==, !=, in, notin, >, < or a comma at character 8"],
    ["size>big", "expected an integer at character 6"],
    ["size<-1", "expected an integer at character 6"],
    ["size>99999999999999999999", "expected an integer"],
    ["region\u00a0=eu", "expected a label key"],
  ])("%j", (text, message) => {
    const parsed = parseLabelSelector(text);
    expect(parsed).toEqual({ ok: false, message: expect.stringContaining(message) });
  });
});

const key: fc.Arbitrary<string> = fc.constantFrom("a", "b", "in", "x.io/a");
const value: fc.Arbitrary<string> = fc.constantFrom("", "1", "2", "in", "B_.c");
const space = fc.constantFrom("", " ", "\t ");
/** A requirement as text beside what it means, said without a parser. */
const requirement = fc
  .record({
    key,
    values: fc.array(value, { minLength: 1, maxLength: 3 }),
    space,
    kind: fc.constantFrom("exists", "absent", "=", "==", "!=", "in", "notin"),
  })
  .map(({ key, values, space, kind }) => {
    const [first = ""] = values;
    const s = space;
    switch (kind) {
      case "exists":
        return { text: `${s}${key}${s}`, holds: (labels: Labels) => key in labels };
      case "absent":
        return { text: `!${s}${key}`, holds: (labels: Labels) => !(key in labels) };
      case "in":
      case "notin": {
        const text = `${key} ${kind}${s}(${s}${values.join(`${s},${s}`)})`;
        return { text, holds: (labels: Labels) => (kind === "in") === values.includes(labels[key] ?? "not there") };
      }
      default:
        return {
          text: `${key}${s}${kind}${s}${first}`,
          holds: (labels: Labels) => (kind === "!=") !== (labels[key] === first),
        };
    }
  });

describe("for all selectors and labels", () => {
  test("parses any selector to its requirements", () => {
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 4 }), fc.dictionary(key, value), (requirements, labels) => {
        const text = requirements.map((each) => each.text).join(",");
        expect(matches(text, labels)).toBe(requirements.every(({ holds }) => holds(labels)));
      }),
      { numRuns: 2000 },
    );
  });

  test("parses or refuses any text without throwing", () => {
    const noise = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: fc.constantFrom(..."a1-/.=!<>(), in") }));
    fc.assert(
      fc.property(noise, (text) => {
        const parsed = parseLabelSelector(text);
        const selector: Selector = parsed.ok ? parsed.selector : [];
        expect(typeof selectorMatches(selector, { a: "1" })).toBe("boolean");
        if (!parsed.ok) expect(parsed.message).toMatch(/^expected .+ at character \d+, found /);
      }),
      { numRuns: 2000 },
    );
  });
});
