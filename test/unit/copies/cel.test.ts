import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CelMember, celValue, compile, type Evaluated, type ExpressionUse } from "../../../src/copies/cel.ts";

function run(
  text: string,
  variables: object,
  subject: ExpressionUse = "health",
): Evaluated | { readonly problem: string } {
  const expression = compile(text, subject);
  if ("problem" in expression) return expression;
  const entries = Object.entries(variables).map(([name, value]) => [name, celValue(value)]);
  return expression(Object.fromEntries(entries));
}

function runOverMembers(text: string, objects: readonly object[], values: readonly unknown[] = []): unknown {
  const expression = compile(text, "status");
  if ("problem" in expression) return expression;
  const members = objects.map(
    (object, index) => new CelMember({ name: `m${index}`, ready: index !== 1, object: { ...object } }),
  );
  return expression({ members, values: celValue(values) });
}

const OBJECT = {
  metadata: { name: "one", generation: 3, labels: { constructor: "x" } },
  spec: { size: 2.5, ports: [80, 443] },
  status: { phase: "Up", ready: 2, at: "2026-01-02T03:04:05Z", conditions: [{ type: "Ready", status: "True" }] },
};

test.each<[string, unknown]>([
  ["object.status.phase == 'Up'", true],
  ["object.status.ready + 1", 3],
  ["object.status.ready >= object.spec.size", false],
  ["object.spec.size * 2.0", 5],
  ["has(object.status.url) ? object.status.url : 'none'", "none"],
  ["object.?status.?url.orValue('none')", "none"],
  ["object.?status.?url", undefined],
  ["object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", true],
  ["object.status.conditions.filter(c, c.type == 'Ready').map(c, c.status)", ["True"]],
  ["object.spec.ports.exists_one(port, port == 80) && size(object.spec.ports) == 2", true],
  ["object.metadata.labels['constructor']", "x"],
  ["timestamp(object.status.at) + duration('1h')", "2026-01-02T04:04:05Z"],
  ["timestamp(object.status.at).getHours()", 3],
  ["object.spec.ports.filter(p, object.spec.ports.all(q, p <= q))[?0]", 80],
  ["object.spec.ports.filter(p, p > 1000)[?0]", undefined],
  ["{'phase': object.status.phase, 'ready': [object.status.ready]}", { phase: "Up", ready: [2] }],
  ["object.metadata", { name: "one", generation: 3, labels: { constructor: "x" } }],
  ["object.status.phase.startsWith('U') ? dyn(null) : 1", null],
])("%s is %j", (text, value) => {
  expect(run(text, { object: OBJECT })).toEqual({ value });
});

test("integers beyond the range of a number stay exact", () => {
  expect(run("object.n == 9007199254740993", { object: { n: JSON.rawJSON("9007199254740993") } })).toEqual({
    value: true,
  });
});

test.each<[string, string]>([
  ["objekt.status", "line 1, column 1: Unknown variable: objekt"],
  ["object.status.phase ==", "line 1, column 23: Unexpected token: EOF"],
  ["object.status.ready > 1 &&\n  size(3) == 1", "line 2, column 3: found no matching overload for 'size(int)'"],
  [
    "object.status.phase.matches('(a+)+')",
    "line 1, column 1: matches() is not available: use startsWith, contains or split",
  ],
  [
    "timestamp(object.status.at).getHours('Europe/Berlin') == 1",
    "line 1, column 1: getHours() takes no time zone: times are in UTC",
  ],
])("%s does not compile", (text, problem) => {
  expect(compile(text, "health")).toEqual({ problem });
});

test("a misspelt field of a member does not compile", () => {
  expect(compile("members.all(m, m.nmae == 'west')", "status")).toEqual({
    problem: "line 1, column 18: No such key: nmae",
  });
});

test.each<[string, unknown]>([
  ["members.filter(m, m.ready).map(m, m.name)", ["m0", "m2"]],
  [
    "members.map(m, m.object.?status.?addresses.orValue([])).flatten()",
    [{ value: "a", type: "IP" }, { value: "b" }, { type: "IP", value: "a" }],
  ],
  [
    "members.map(m, m.object.?status.?addresses.orValue([])).flatten().distinct()",
    [{ type: "IP", value: "a" }, { value: "b" }],
  ],
  ["[[1, [2]], [3]].flatten()", [1, [2], 3]],
  ["[1, 2, 1].distinct()", [1, 2]],
])("over members, %s is %j", (text, value) => {
  const addresses = [[{ value: "a", type: "IP" }, { value: "b" }], undefined, [{ type: "IP", value: "a" }]];
  const objects = addresses.map((some) => (some === undefined ? {} : { status: { addresses: some } }));
  expect(runOverMembers(text, objects)).toEqual({ value });
});

test.each<[string, string, boolean]>([
  ["object.status.url == ''", "line 1, column 15: No such key: url", true],
  ["object.toString == ''", "line 1, column 8: No such key: toString", true],
  ["object.status.phase + 1", "line 1, column 1: no such overload: dyn<string> + int", false],
  ["duration('1h')", "yields a value that JSON does not have: convert it by string()", false],
  ["1.0 / 0.0", "yields a value that JSON does not have: convert it by string()", false],
])("%s yields no value", (text, problem, isMissing) => {
  expect(run(text, { object: OBJECT })).toEqual({ problem, isMissing });
});

describe("an expression that costs too much is ended", () => {
  const many = Array.from({ length: 300 }, (_, index) => ({ status: { phase: `p${index}`, parts: [1, 2, 3] } }));

  test.each([
    "members.all(a, members.all(b, members.all(c, a.name != '' && b.name != '' && c.name != '')))",
    "members.exists(a, members.exists(b, members.exists(c, a.name == '' || b.name == '' || c.name == '')))",
    "members.all(a, members.all(b, a.object == b.object || true))",
    "members.all(a, members == members && members.filter(b, true) == members)",
    `['aaaaaaaa']${".map(a, a + a + a + a)".repeat(30)}`,
    `[values]${".map(a, a + a + a + a)".repeat(20)}.size()`,
  ])("%s", (text) => {
    const started = performance.now();
    expect(runOverMembers(text, many, [1, 2, 3])).toEqual({
      problem: expect.stringContaining("takes more than 100000 steps"),
      isMissing: false,
    });
    // Far more than it takes on a busy machine.
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test("and the next one is not", () => {
    expect(runOverMembers("members.all(m, m.object.status.phase != '')", many)).toEqual({ value: true });
    expect(runOverMembers("members.map(m, m.object.status.phase).join().size()", many)).toEqual({ value: 1090 });
  });

  test("and so are objects that are too large", () => {
    expect(() => celValue(Array.from({ length: 500_001 }, () => 1))).toThrow(
      "the objects have more than 500000 values",
    );
  });
});

test("any JSON value passes through an expression unchanged", () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const result = run("object.value", { object: { value } });
      // JSON has no negative zero.
      expect(result).toEqual({ value: JSON.parse(JSON.stringify(value)) });
    }),
  );
});

test("no text makes the compiler throw", () => {
  const part = fc.constantFrom(
    "object",
    "members",
    ".",
    "(",
    ")",
    "all",
    "map",
    "m",
    ",",
    "'",
    "==",
    "1",
    "[",
    "]",
    "?",
    ":",
    "\n",
    "{",
    "}",
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 20 }), (parts) => {
      const result = run(parts.join(""), { object: OBJECT });
      expect("problem" in result || "value" in result).toBe(true);
    }),
  );
});
