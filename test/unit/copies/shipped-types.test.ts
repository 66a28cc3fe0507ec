import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { delegatedTypeSchema } from "../../../src/api/delegated-type.ts";
import type { JsonObject } from "../../../src/api/json.ts";
import type { MemberCopy } from "../../../src/copies/object-status.ts";
import { compileExpressions } from "../../../src/copies/type-expressions.ts";

function ruled(
  type: string,
  merged: JsonObject,
  copies: Readonly<Record<string, object | "lost" | undefined>>,
): unknown {
  const text = readFileSync(new URL(`../../../manifests/delegated-types/${type}.yaml`, import.meta.url), "utf8");
  const { spec } = delegatedTypeSchema.parse(parse(text));
  const metadata = { name: "web", uid: "u1", resourceVersion: "1" };
  const holders = Object.entries(copies).map(
    ([member, status]): MemberCopy => ({
      ...{ member, inStep: true, isLost: status === "lost" },
      ...(status === undefined ? {} : { copy: { metadata, status: status === "lost" ? LOST : status } }),
    }),
  );
  const expressions = compileExpressions(spec);
  expect(expressions.problems).toEqual([]);
  return expressions.statusOf(merged, holders);
}

const [ONE, TWO, OLD] = [{ ip: "192.0.2.1" }, { ip: "192.0.2.2" }, { ip: "192.0.2.9" }];
const PARENT = { parentRef: { name: "web" }, controllerName: "example.com/gateways" };
const OTHER = { parentRef: { name: "other" }, controllerName: "example.com/gateways" };
const of = (parent: object, status: string, by = ""): object => ({
  ...parent,
  conditions: [{ type: "Accepted", status, message: by }],
});
const LOST = { loadBalancer: { ingress: [OLD] }, addresses: [OLD], parents: [of(PARENT, "False", "lost")] };

describe("the status of an Ingress", () => {
  test("has the addresses of all members that are not lost, each once", () => {
    const of = (...ingress: object[]): object => ({ loadBalancer: { ingress } });
    expect(ruled("ingresses.networking.k8s.io", {}, { a: of(ONE), b: of(TWO, ONE), c: "lost", d: undefined })).toEqual({
      status: of(ONE, TWO),
      problems: [],
    });
  });

  test("has no list while there is no address, as the API server has it", () => {
    const merged = { loadBalancer: {} };
    expect(ruled("ingresses.networking.k8s.io", merged, { a: { loadBalancer: {} }, b: "lost" })).toEqual({
      ...{ status: { loadBalancer: {} }, problems: [] },
    });
  });
});

test("the status of a Gateway has the addresses of all members that are not lost, beside its other fields", () => {
  const conditions = [{ type: "Programmed", status: "True" }];
  const of = (...addresses: object[]): object => ({ addresses });
  expect(
    ruled("gateways.gateway.networking.k8s.io", { conditions }, { a: of(ONE, TWO), b: of(TWO), c: "lost" }),
  ).toEqual({
    status: { conditions, addresses: [ONE, TWO] },
    problems: [],
  });
});

test.each<[string, readonly (readonly object[])[], readonly object[]]>([
  [
    "each parent once",
    [[of(PARENT, "True", "a")], [of(PARENT, "True", "b"), of(OTHER, "True", "b")]],
    [of(PARENT, "True", "a"), of(OTHER, "True", "b")],
  ],
  ["who refuses first", [[of(PARENT, "True", "a")], [of(PARENT, "False", "b")]], [of(PARENT, "False", "b")]],
  ["none before a member answers", [[], []], []],
])("the status of an HTTPRoute has %s", (_, [a = [], b = []], parents) => {
  expect(
    ruled("httproutes.gateway.networking.k8s.io", {}, { a: { parents: a }, b: { parents: b }, c: "lost" }),
  ).toEqual({
    status: { parents },
    problems: [],
  });
});
