import { Environment } from "@marcbachmann/cel-js";
import { expect, test } from "vitest";
import { z } from "zod";
import { delegatedTypeSchema } from "../../../src/api/delegated-type.ts";

const { "x-kubernetes-validations": RULES } = z
  .looseObject({ "x-kubernetes-validations": z.array(z.object({ rule: z.string(), message: z.string() })) })
  .parse(z.toJSONSchema(delegatedTypeSchema));

/** Returns why a DelegatedType is refused, at its creation or as a change. */
function refusals(group: string, plural: string, fields: object = {}, before = fields): string[] {
  const cel = new Environment({ enableOptionalTypes: true });
  for (const name of ["self", "oldSelf"]) cel.registerVariable(name, "map");
  const typeWith = (more: object): object => {
    const metadata = { name: group === "" ? plural : `${plural}.${group}` };
    return { metadata, spec: { group, plural, version: "v1", kind: "Any", ...more } };
  };
  const values = { self: typeWith(fields), oldSelf: typeWith(before) };
  return RULES.flatMap(({ rule, message }) => (cel.evaluate(rule, values) === true ? [] : [message]));
}

test.each([
  ["scheduling.k8s.io", "priorityclasses", "spec.classSelector"],
  ["node.k8s.io", "runtimeclasses", "spec.classSelector"],
  ["multicluster.x-k8s.io", "serviceexports", "name services"],
  ["networking.k8s.io", "networkpolicies", "without a DelegatedType"],
])("of %s, %s are refused, which members get otherwise", (group, plural, remedy) => {
  expect(refusals(group, plural)).toEqual([expect.stringContaining(remedy)]);
});

test("other types of the same group are allowed", () => {
  expect(refusals("networking.k8s.io", "ingresses")).toEqual([]);
});

const follows = { names: [{ label: "example.com/license" }] };

test.each<[string, object, string]>([
  ["that runs something", { exclusive: true }, "remove exclusive"],
  ["with rules for a status of its own", { sum: ["used"] }, "remove exclusive"],
  ["without a namespace", { scope: "Cluster" }, "remove scope: Cluster"],
])("no type %s follows pods", (_, fields, words) => {
  expect(refusals("example.com", "licenses", { follows })).toEqual([]);
  expect(refusals("example.com", "licenses", { follows, ...fields })).toEqual([expect.stringContaining(words)]);
});

test("no type of the core group follows pods by a rule, as what pods name of it follows anyway", () => {
  expect(refusals("", "podtemplates", { follows })).toEqual([expect.stringContaining("of the core group")]);
});

test("a type begins or ceases to follow pods only when it is created anew, since its objects are released then", () => {
  const words = [expect.stringContaining("create it anew")];
  expect(refusals("example.com", "licenses", { follows }, {})).toEqual(words);
  expect(refusals("example.com", "licenses", {}, { follows })).toEqual(words);
});
