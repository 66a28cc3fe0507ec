import { expect, test } from "vitest";
import { warningsOf } from "../../../../src/kube/internal/warnings.ts";
import { unknownFieldOf } from "../../../../src/kube/messages.ts";

test.each<[string, string | string[] | undefined, string[]]>([
  ["no header", undefined, []],
  ["one header", '299 - "unknown field \\"spec.x\\""', ['unknown field "spec.x"']],
  ["several headers", ['299 - "a"', '299 kube "b"'], ["a", "b"]],
  ["several warnings in one header", '299 - "a, b", 299 - "c"', ["a, b", "c"]],
  ["another code, and what is no warning", '199 - "a", "b', []],
])("reads the warnings of a response with %s", (_case, warning, expected) => {
  expect(warningsOf({ warning })).toEqual(expected);
});

test.each<[string, string | undefined]>([
  ['unknown field "spec.containers[0].later"', "spec.containers[0].later"],
  ['duplicate field "spec.x"', undefined],
  ['of a webhook: unknown field "spec.x"', undefined],
])("reads the path of an unknown field from: %s", (warning, expected) => {
  expect(unknownFieldOf(warning)).toBe(expected);
});
