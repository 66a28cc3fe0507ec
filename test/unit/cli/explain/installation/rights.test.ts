import { expect, test } from "vitest";
import { rightsFindings } from "../../../../../src/cli/explain/installation/member.ts";
import { findLacking, rightsOf, rightsText } from "../../../../../src/cli/explain/installation/rights.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { limits } from "./given.ts";

const wanted = rightsOf([
  { apiGroups: [""], resources: ["pods", "pods/log"], verbs: ["get"] },
  { apiGroups: ["rbac"], resources: ["clusterroles"], resourceNames: ["own"], verbs: ["delete"] },
  { nonResourceURLs: ["/readyz"], verbs: ["get"] },
]);

test("each right of an account is asked for, and those that it lacks are named", async () => {
  const asked: unknown[] = [];
  const raw = async ({ body }: { body?: object }) => {
    const { spec } = body as { spec: { resourceAttributes?: { resource: string; subresource?: string } } };
    asked.push(spec);
    const { resource, subresource } = spec.resourceAttributes ?? {};
    return { status: { allowed: resource === "pods" && subresource === undefined } };
  };
  const lacking = await findLacking(fakeClient({ raw }), wanted, limits);
  expect(rightsText(lacking)).toBe("pods/log: get; clusterroles.rbac: delete; /readyz: get");
  expect(asked).toEqual([
    { resourceAttributes: { verb: "get", group: "", resource: "pods" } },
    { resourceAttributes: { verb: "get", group: "", resource: "pods", subresource: "log" } },
    { resourceAttributes: { verb: "delete", group: "rbac", resource: "clusterroles", name: "own" } },
    { nonResourceAttributes: { path: "/readyz", verb: "get" } },
  ]);
});

test("lacking rights fail, and joining again gives them", () => {
  expect(rightsFindings("west", wanted.slice(0, 1))).toMatchObject([
    { state: "FAIL", remedy: "legation join west --member-kubeconfig FILE" },
  ]);
  expect(rightsFindings("west", [])).toMatchObject([{ state: "OK" }]);
});
