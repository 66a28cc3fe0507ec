import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutManagedFields, heapBytesOf, parseJson } from "../../../src/kube/json.ts";

describe("heapBytesOf", () => {
  test.each([
    ["a string is its characters, whatever they are", '"[{,\\",{"', 9],
    ["backslashes do not hide its end", '["\\\\",1]', 8 + 64 + 32],
    ["a string without an end is its characters", '"[{,', 4],
    ["objects and arrays take more than their two characters", "[{},[],{}]", 10 + 4 * 64 + 2 * 32],
  ])("%s", (_case, text, bytes) => {
    expect(heapBytesOf(text)).toBe(bytes);
  });
});

describe("parseJson", () => {
  test.each([
    ["an integer beyond 2^53", '{"a":9007199254740993}'],
    ["the largest int64", '{"a":[1,9223372036854775807]}'],
    ["a negative one", '{"a":-9223372036854775808,"b":{"c":12345678901234567890}}'],
    ["digits in a string", '{"a":"sha256:12345678901234567890","b":1}'],
    ["one inside an object with a digest", '{"d":"sha256:12345678901234567890","n":9007199254740993}'],
    [
      "unknown fields, unicode and escapes",
      '{"x-unknown":{"ä\\n":[null,true,"\\u2028😀"]}}'.replace("\\u2028", "\u2028"),
    ],
  ])("preserves %s to the byte", (_case, text) => {
    expect(JSON.stringify(parseJson(text))).toBe(text);
  });

  test("leaves safe integers of sixteen digits as numbers", () => {
    expect(parseJson('{"a":1234567890123456}')).toEqual({ a: 1234567890123456 });
  });

  test("keeps every int64 in any place", () => {
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })), (values) => {
        const text = `{"values":[${values.join(",")}]}`;
        expect(JSON.stringify(parseJson(text))).toBe(text);
      }),
    );
  });

  test("agrees with JSON.parse wherever doubles are exact", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        expect(JSON.stringify(parseJson(text))).toBe(text);
      }),
    );
  });
});

describe("cutManagedFields", () => {
  const managed = [{ manager: 'k"]', fieldsV1: { 'k:{"a":"]"}': { ".": {} }, "f:x": [["\\"], {}] } }];

  /** The reference: parse everything, then delete. */
  function without(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(without);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key, inner]) => key !== "managedFields" || !Array.isArray(inner))
        .map(([key, inner]) => [key, without(inner)]),
    );
  }

  test.each<[string, object]>([
    ["alone", { metadata: { managedFields: managed } }],
    ["first", { metadata: { managedFields: managed, name: "a" } }],
    ["last", { metadata: { name: "a", managedFields: managed } }],
    ["between", { metadata: { name: "a", managedFields: managed, uid: "u" } }],
    [
      "in every item",
      { items: [{ metadata: { managedFields: managed } }, { metadata: { name: "b", managedFields: [] } }] },
    ],
    ["only in strings", { data: { a: '"managedFields":[', b: '{"managedFields":["x"]}' } }],
  ])("removes them where they are %s", (_case, object) => {
    expect(JSON.parse(cutManagedFields(JSON.stringify(object)))).toEqual(without(object));
  });

  test("preserves everything else of any object", () => {
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.string(),
        fc.constant('"managedFields":[\\'),
        fc.integer(),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom("managedFields", "metadata", '"', "ends["), tie("value"), {
          maxKeys: 4,
          noNullPrototype: true,
        }),
      ),
    }));
    fc.assert(
      fc.property(value, (any) => {
        expect(JSON.parse(cutManagedFields(JSON.stringify(any)))).toEqual(without(any));
      }),
    );
  });

  test("leaves truncated text for JSON.parse to reject", () => {
    expect(cutManagedFields('{"managedFields":[{"a":"]')).toBe('{"managedFields":[{"a":"]');
  });
});
