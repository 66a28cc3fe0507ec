import { Environment } from "@marcbachmann/cel-js";
import { expect, test } from "vitest";
import { z } from "zod";
import { delegatedTypeSchema } from "../../../src/api/delegated-type.ts";

const { "x-kubernetes-validations": RULES } = z
  .looseObject({ "x-kubernetes-validations": z.array(z.object({ rule: z.string(), message: z.string() })) })
  .parse(z.toJSONSchema(delegatedTypeSchema));

/** Returns why a DelegatedType is refused. */
function refusals(group: string, plural: string): string[] {
  const cel = new Environment({ enableOptionalTypes: true }).registerVariable("self", "map");
  const self = { metadata: { name: `${plural}.${group}` }, spec: { group, plural, version: "v1", kind: "Any" } };
  return RULES.flatMap(({ rule, message }) => (cel.evaluate(rule, { self }) === true ? [] : [message]));
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
