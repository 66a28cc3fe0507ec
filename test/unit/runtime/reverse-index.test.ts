import { expect, test } from "vitest";
import { ReverseIndex } from "../../../src/runtime/reverse-index.ts";

test("an index returns the items of a value in the order in which they came, until they lose it", () => {
  const index = new ReverseIndex<string, string>();
  index.set("a", ["red", "round"]);
  index.set("b", ["red"]);
  index.set("a", ["round", "red"]);
  expect([...index.of("red")]).toEqual(["a", "b"]);
  index.set("a", ["round"]);
  expect([[...index.of("red")], [...index.of("round")]]).toEqual([["b"], ["a"]]);
  expect(index.delete("b")).toEqual(["red"]);
  expect(index.delete("b")).toEqual([]);
  expect([index.has("red"), [...index.of("red")], [...index.values()]]).toEqual([false, [], ["round"]]);
});
