import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type ComparedLine, compareObjects } from "../../../../src/cli/ui/compare.ts";

const side = (lines: readonly ComparedLine[], name: "left" | "right"): string =>
  lines.flatMap((line) => line[name] ?? []).join("\n");
const differing = (lines: readonly ComparedLine[]): string[] =>
  lines.filter(({ differs }) => differs).map(({ path }) => path);

test("puts equal fields on one line, and marks those that differ or are missing, by path", () => {
  const lines = compareObjects(
    { metadata: { name: "web-0", uid: "a" }, spec: { nodeName: "legation-west" } },
    { metadata: { name: "web-0", uid: "b", annotations: { note: "x" } }, spec: { nodeName: "node-1" } },
  );
  expect(lines.map(({ left = "", right = "" }) => `${left} | ${right}`)).toEqual([
    "metadata: | metadata:",
    "  name: web-0 |   name: web-0",
    "  uid: a |   uid: b",
    " |   annotations:",
    " |     note: x",
    "spec: | spec:",
    "  nodeName: legation-west |   nodeName: node-1",
  ]);
  expect(differing(lines)).toEqual([
    "metadata.uid",
    "metadata.annotations",
    "metadata.annotations.note",
    "spec.nodeName",
  ]);
});

test.each([
  [
    "containers by name",
    [{ name: "a", image: "1" }],
    [{ name: "sidecar" }, { name: "a", image: "2" }],
    ["l[sidecar].name", "l[a].image"],
  ],
  [
    "mounts of one volume by path",
    [
      { name: "v", mountPath: "/a" },
      { name: "v", mountPath: "/b" },
    ],
    [
      { name: "v", mountPath: "/b" },
      { name: "v", mountPath: "/a" },
    ],
    [],
  ],
  ["values by position", ["a", "b"], ["a", "c", "d"], ["l[1]", "l[2]"]],
])("pairs %s", (_, left, right, paths) => {
  expect(differing(compareObjects({ l: left }, { l: right }))).toEqual(paths);
});

test("hides the values of a Secret, and still tells that they differ", () => {
  const hidden = new Set(["data"]);
  const lines = compareObjects({ data: { password: "c2VjcmV0" } }, { data: { password: "b3RoZXI=" } }, { hidden });
  expect(lines.at(-1)).toEqual({
    path: "data.password",
    left: "  password: (hidden, 8 characters)",
    right: "  password: (hidden, 8 characters)",
    differs: true,
  });
});

test("cuts long values, and keeps values with line breaks on one line", () => {
  const [long, text] = compareObjects({ long: "x".repeat(5_000), text: "a\nb" }, undefined);
  expect(long?.left?.length).toBeLessThan(250);
  expect(long?.left).toContain("5000 characters");
  expect(text?.left).toBe('text: "a\\nb"');
});

describe("an object of a hostile member", () => {
  const sizeOf = (lines: readonly ComparedLine[]): number => JSON.stringify(lines).length;

  test("has a bounded number of lines, the last of which says so", () => {
    const lines = compareObjects({ l: Array.from({ length: 100_000 }, (_, index) => index) }, { l: [0] });
    expect(lines).toHaveLength(20_001);
    expect(lines.at(-1)).toMatchObject({ left: expect.stringContaining("the rest is not shown"), differs: true });
  });

  test("has a bounded depth", () => {
    const nested = (levels: number): Record<string, unknown> => {
      let object: Record<string, unknown> = { end: "" };
      for (let level = 0; level < levels; level++) object = { a: object };
      return object;
    };
    const deep = nested(5_000);
    const lines = compareObjects(deep, deep);
    expect(lines.length).toBeLessThan(70);
    expect(sizeOf(lines)).toBeLessThan(50_000);
  });

  test("has a bounded size, whatever its names", () => {
    const long = "k".repeat(10_000);
    const names = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`${long}${index}`, { [long]: long }]));
    expect(sizeOf(compareObjects(names, names))).toBeLessThan(2_000_000);
    const deep = (level: number): unknown => (level === 0 ? 1 : { ["k".repeat(150)]: deep(level - 1), [long]: 2 });
    const many = { l: Array.from({ length: 5_000 }, () => deep(60)) };
    const lines = compareObjects(many, undefined);
    expect(sizeOf(lines)).toBeLessThan(6_000_000);
    expect(lines.at(-1)?.left).toContain("the rest is not shown");
  });

  test("keeps items whose keys are objects", () => {
    const items = [{ name: { toString: 1 } }, { name: { toString: 2 } }];
    expect(differing(compareObjects({ l: items }, { l: items }))).toEqual([]);
    expect(compareObjects({ l: items }, undefined)).toHaveLength(5);
  });
});

test("puts fields that only the copy has behind their predecessor there", () => {
  const lines = compareObjects({ a: 1, b: 2, c: 3 }, { x: 0, c: 3, y: 0, z: 0, a: 1, w: 0 });
  expect(lines.map(({ path }) => path)).toEqual(["x", "a", "w", "b", "c", "y", "z"]);
});

test("writes YAML that reads as the object again", () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.string({ maxLength: 40 }),
      fc.integer(),
      fc.boolean(),
      tie("list"),
      tie("fields"),
    ),
    list: fc.array(tie("value"), { maxLength: 3 }),
    fields: fc.dictionary(fc.stringMatching(/^[a-z/.]{1,8}$/), tie("value"), { maxKeys: 4, noNullPrototype: true }),
  })).fields;
  const object = value.filter((each): each is Record<string, unknown> => Object.keys(each as object).length > 0);
  fc.assert(
    fc.property(object, object, (left, right) => {
      const lines = compareObjects(left, right);
      expect(parse(side(lines, "left"))).toEqual(left);
      expect(parse(side(lines, "right"))).toEqual(right);
      expect(differing(compareObjects(left, left))).toEqual([]);
    }),
  );
});
