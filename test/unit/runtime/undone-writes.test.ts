import { expect, test } from "vitest";
import { UndoneWrites } from "../../../src/runtime/undone-writes.ts";

const LIMIT = { most: 3, withinMs: 1_000 };

/** Notes these writes at these times, and returns what each counts as. */
function noted(writes: readonly (readonly [wanted: Record<string, string>, at: number])[]): boolean[] {
  const undone = new UndoneWrites(LIMIT);
  return writes.map(([wanted, at]) => undone.note("a", wanted, at));
}

test.each<[string, Parameters<typeof noted>[0], boolean[]]>([
  [
    "the third for one purpose within the time",
    [
      [{ x: "1" }, 0],
      [{ x: "1" }, 500],
      [{ x: "1" }, 999],
    ],
    [false, false, true],
  ],
  [
    "each further one while they go on",
    [
      [{ x: "1" }, 0],
      [{ x: "1" }, 1],
      [{ x: "1" }, 2],
      [{ x: "1" }, 3],
    ],
    [false, false, true, true],
  ],
  [
    "none if the first is as old as the time",
    [
      [{ x: "1" }, 0],
      [{ x: "1" }, 500],
      [{ x: "1" }, 1_000],
    ],
    [false, false, false],
  ],
  [
    "none after a write that wants the contrary",
    [
      [{ x: "1" }, 0],
      [{ x: "1" }, 1],
      [{ x: "2" }, 2],
      [{ x: "1" }, 3],
    ],
    [false, false, false, false],
  ],
  [
    "the third despite writes of other parts between them",
    [
      [{ x: "1" }, 0],
      [{ y: "1" }, 1],
      [{ x: "1" }, 2],
      [{ y: "2" }, 3],
      [{ x: "1" }, 4],
    ],
    [false, false, false, false, true],
  ],
  [
    "none of a part that is also written with another one",
    [
      [{ x: "1" }, 0],
      [{ x: "1", y: "1" }, 1],
      [{ x: "1" }, 2],
    ],
    [false, false, false],
  ],
])("another manager undoes writes: counts %s", (_, writes, expected) => {
  expect(noted(writes)).toEqual(expected);
});

test("the writes of each object are counted apart, until they are forgotten", () => {
  const undone = new UndoneWrites(LIMIT);
  for (const object of ["a", "b", "a", "b"]) undone.note(object, { x: "1" }, 0);
  expect([
    undone.count("a", { x: "1" }, 0),
    undone.count("a", { x: "2" }, 0),
    undone.count("a", { x: "1" }, 1_000),
  ]).toEqual([2, 0, 0]);
  undone.forget("a");
  expect([undone.note("a", { x: "1" }, 1), undone.note("b", { x: "1" }, 1)]).toEqual([false, true]);
});

test("objects whose writes are all too old are dropped, the oldest first", () => {
  const undone = new UndoneWrites(LIMIT);
  for (const [object, at] of [
    ["a", 0],
    ["b", 900],
    ["c", 1_000],
  ] as const)
    undone.note(object, { x: "1" }, at);
  expect([...undone.objects()]).toEqual(["b", "c"]);
});
