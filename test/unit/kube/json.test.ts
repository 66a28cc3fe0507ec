import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseJson } from "../../../src/kube/json.ts";

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
  ])("gives back %s to the byte", (_case, text) => {
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
