import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { byName, jsonEqual, pathOfPointer, setAt, sortedKeys, valueAt, withoutNulls } from "../../../src/api/json.ts";

test.each<[unknown, unknown, boolean]>([
  [{ a: 1 }, { a: 1, b: undefined }, true],
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ a: null }, {}, false],
  [[1, 2], [2, 1], false],
  [[], {}, false],
  [[1], [1, 2], false],
  [null, {}, false],
])("%j equals %j: %s", (a, b, expected) => {
  expect([jsonEqual(a, b), jsonEqual(b, a)]).toEqual([expected, expected]);
});

test("JSON text with sorted keys is equal for objects that differ in the order of their keys", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const reversed = JSON.parse(JSON.stringify(value), (_key, each: unknown) =>
        typeof each === "object" && each !== null && !Array.isArray(each)
          ? Object.fromEntries(Object.entries(each).reverse())
          : each,
      );
      return JSON.stringify(reversed, sortedKeys) === JSON.stringify(value, sortedKeys);
    }),
  );
});

describe("a path of fields", () => {
  test("leads to nothing through a list, a text or a missing field", () => {
    const object = { spec: { replicas: 3, list: [{ a: 1 }], text: "a" } };
    expect(valueAt(object, ["spec", "replicas"])).toBe(3);
    for (const path of [
      ["spec", "list", "0"],
      ["spec", "text", "length"],
      ["status", "phase"],
    ]) {
      expect(valueAt(object, path)).toBeUndefined();
    }
  });

  test("is made where a value is set, and leaves the original as it was", () => {
    const object = { spec: { replicas: 3, managedBy: "text" } };
    expect(setAt(object, ["spec", "managedBy", "name"], "x")).toEqual({
      spec: { replicas: 3, managedBy: { name: "x" } },
    });
    expect(object.spec.managedBy).toBe("text");
  });

  test("is read from a JSON pointer with its escapes", () => {
    expect(pathOfPointer("/metadata/annotations/example.com~1a~0b")).toEqual([
      "metadata",
      "annotations",
      "example.com/a~b",
    ]);
  });
});

test("null fields are left out at any depth, and a value without one stays the same object", () => {
  expect(withoutNulls({ a: null, list: [{ b: null, c: 1 }, null] })).toEqual({ list: [{ c: 1 }, null] });
  const value = { a: [1, null] };
  expect(withoutNulls(value)).toBe(value);
});

test("finds no field that an object only inherits", () => {
  expect(valueAt({}, ["constructor"])).toBeUndefined();
  expect(byName({ west: 1 }).constructor).toBeUndefined();
});
