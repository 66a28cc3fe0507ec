import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type ComparedLine, compareObjects } from "../../../../src/cli/ui/compare.ts";

const { signal } = new AbortController();
const compare = (
  left: Record<string, unknown> | undefined,
  right: Record<string, unknown> | undefined,
  hidden: ReadonlySet<string> = new Set(),
): Promise<ComparedLine[]> => compareObjects(left, right, { signal, hidden });
const side = (lines: readonly ComparedLine[], name: "left" | "right"): string =>
  lines.flatMap((line) => line[name] ?? []).join("\n");
const differing = (lines: readonly ComparedLine[]): string[] =>
  lines.filter(({ differs }) => differs).map(({ path }) => path);

test("puts equal fields on one line, and marks those that differ or are missing, by path", async () => {
  const lines = await compare(
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
])("compares line by line, and pairs %s", async (_, left, right, paths) => {
  expect(differing(await compare({ l: left }, { l: right }))).toEqual(paths);
});

test("hides the values of a Secret, and still tells that they differ", async () => {
  const hidden = new Set(["data", "metadata.annotations.example.com/applied"]);
  const of = (password: string) => ({
    metadata: { annotations: { "example.com/applied": password, note: "shown" } },
    data: { password },
  });
  const lines = await compare(of("c2VjcmV0"), of("b3RoZXI="), hidden);
  expect(JSON.stringify(lines)).not.toContain("c2VjcmV0");
  expect(JSON.stringify(lines)).toContain("shown");
  expect(lines.at(-1)).toEqual({
    path: "data.password",
    left: "  password: (hidden, 8 characters)",
    right: "  password: (hidden, 8 characters)",
    differs: true,
  });
});

test("cuts long values, and keeps values with line breaks on one line", async () => {
  const [long, text] = await compare({ long: "x".repeat(5_000), text: "a\nb" }, undefined);
  expect(long?.left?.length).toBeLessThan(250);
  expect(long?.left).toContain("5000 characters");
  expect(text?.left).toBe('text: "a\\nb"');
});

describe("an object of a hostile member", () => {
  const sizeOf = (lines: readonly ComparedLine[]): number => JSON.stringify(lines).length;

  test("has a bounded number of lines, the last of which says so", async () => {
    const lines = await compare({ l: Array.from({ length: 100_000 }, (_, index) => index) }, { l: [0] });
    expect(lines).toHaveLength(20_001);
    expect(lines.at(-1)).toMatchObject({ left: expect.stringContaining("the rest is not shown"), differs: true });
  });

  test("has a bounded depth", async () => {
    const nested = (levels: number): Record<string, unknown> => {
      let object: Record<string, unknown> = { end: "" };
      for (let level = 0; level < levels; level++) object = { a: object };
      return object;
    };
    const deep = nested(5_000);
    const lines = await compare(deep, deep);
    expect(lines.length).toBeLessThan(70);
    expect(sizeOf(lines)).toBeLessThan(50_000);
  });

  test("has a bounded size, whatever its names", async () => {
    const long = "k".repeat(10_000);
    const names = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`${long}${index}`, { [long]: long }]));
    expect(sizeOf(await compare(names, names))).toBeLessThan(2_000_000);
    const deep = (level: number): unknown => (level === 0 ? 1 : { ["k".repeat(150)]: deep(level - 1), [long]: 2 });
    const many = { l: Array.from({ length: 5_000 }, () => deep(60)) };
    const lines = await compare(many, undefined);
    expect(sizeOf(lines)).toBeLessThan(6_000_000);
    expect(lines.at(-1)?.left).toContain("the rest is not shown");
  });

  test("leaves other users their turns while it is compared", async () => {
    const side = (text: string): object =>
      Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, `${text}: ${index}`]));
    let turns = 0;
    const counting = setInterval(() => (turns += 1), 0);
    const lines = await compare({ ...side("a") }, { ...side("b") });
    clearInterval(counting);
    expect(lines).toHaveLength(20_000);
    expect(turns).toBeGreaterThan(1);
  });

  test("is given up with its request", async () => {
    const stopped = new AbortController();
    const many = { l: Array.from({ length: 50_000 }, (_, index) => `value: ${index}`) };
    const comparing = compareObjects(many, undefined, { signal: stopped.signal });
    stopped.abort(new Error("signed out"));
    await expect(comparing).rejects.toThrow("signed out");
  });

  test("keeps items whose keys are objects", async () => {
    const items = [{ name: { toString: 1 } }, { name: { toString: 2 } }];
    expect(differing(await compare({ l: items }, { l: items }))).toEqual([]);
    expect(await compare({ l: items }, undefined)).toHaveLength(5);
  });
});

test("puts fields that only the copy has behind their predecessor there", async () => {
  const lines = await compare({ a: 1, b: 2, c: 3 }, { x: 0, c: 3, y: 0, z: 0, a: 1, w: 0 });
  expect(lines.map(({ path }) => path)).toEqual(["x", "a", "w", "b", "c", "y", "z"]);
});

test("writes values of different kinds below each other, each in full", async () => {
  const long = Array.from({ length: 30 }, (_, index) => `item ${index}`);
  const lines = await compare({ a: 1, l: [long, { b: long }] }, { a: { b: long }, l: [0, long] });
  expect(parse(side(lines, "left"))).toEqual({ a: 1, l: [long, { b: long }] });
  expect(parse(side(lines, "right"))).toEqual({ a: { b: long }, l: [0, long] });
  expect(lines.slice(0, 3)).toEqual([
    { path: "a", left: "a: 1", differs: true },
    { path: "a", right: "a:", differs: true },
    { path: "a.b", right: "  b:", differs: true },
  ]);
});

test("writes YAML that reads as the object again", async () => {
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
  await fc.assert(
    fc.asyncProperty(object, object, async (left, right) => {
      const lines = await compare(left, right);
      expect(parse(side(lines, "left"))).toEqual(left);
      expect(parse(side(lines, "right"))).toEqual(right);
      expect(differing(await compare(left, left))).toEqual([]);
    }),
  );
});
