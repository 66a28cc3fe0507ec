import { describe, expect, test } from "vitest";
import { rightsFindings } from "../../../../../src/cli/explain/installation/member.ts";
import {
  findLacking,
  lackingRights,
  rightsOf,
  rightsText,
} from "../../../../../src/cli/explain/installation/rights.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { limits } from "./given.ts";

describe("rights", () => {
  const wanted = rightsOf([
    { apiGroups: [""], resources: ["pods", "pods/log"], verbs: ["get"] },
    { apiGroups: ["rbac"], resources: ["clusterroles"], resourceNames: ["own"], verbs: ["delete"] },
    { nonResourceURLs: ["/readyz"], verbs: ["get"] },
  ]);
  const rule = (verbs: string[], apiGroups: string[], resources: string[], resourceNames: string[] = []) => ({
    ...{ verbs, apiGroups, resources, resourceNames },
  });

  test("are held by equal rules and by wildcards", () => {
    const nonResourceRules = [{ verbs: ["*"], nonResourceURLs: ["/ready*"] }];
    const exact = [rule(["get"], [""], ["pods", "pods/log"]), rule(["delete"], ["rbac"], ["clusterroles"], ["own"])];
    expect(lackingRights(wanted, { resourceRules: exact, nonResourceRules })).toEqual([]);
    expect(lackingRights(wanted, { resourceRules: [rule(["*"], ["*"], ["*"])], nonResourceRules })).toEqual([]);
    const sub = [rule(["get"], [""], ["pods", "*/log"]), rule(["delete"], ["rbac"], ["*"])];
    expect(lackingRights(wanted, { resourceRules: sub, nonResourceRules })).toEqual([]);
  });

  test("that rules for one name or another verb give are lacking", () => {
    const some = [rule(["get"], [""], ["pods"], ["one"]), rule(["list"], ["rbac"], ["clusterroles"])];
    const lacking = lackingRights(wanted, { resourceRules: some, nonResourceRules: null });
    expect(rightsText(lacking)).toBe("pods: get; pods/log: get; clusterroles.rbac: delete; /readyz: get");
    expect(rightsFindings("west", lacking)).toMatchObject([
      { state: "FAIL", remedy: "legation join west --member-kubeconfig FILE" },
    ]);
    expect(rightsFindings("west", [])).toMatchObject([{ state: "OK" }]);
  });
});

describe("rights of an account", () => {
  const wanted = rightsOf([{ apiGroups: [""], resources: ["pods/log", "nodes"], verbs: ["get"] }]);

  test("that an authorizer lists no rules for are asked for one by one", async () => {
    const asked: unknown[] = [];
    const raw = async ({ path, body }: { path: string; body?: object }) => {
      if (path.endsWith("rulesreviews"))
        return { status: { resourceRules: [], nonResourceRules: [], incomplete: true } };
      const { spec } = body as { spec: { resourceAttributes: { resource: string } } };
      asked.push(spec.resourceAttributes);
      return { status: { allowed: spec.resourceAttributes.resource === "pods" } };
    };
    expect(await findLacking(fakeClient({ raw }), wanted, limits)).toEqual([
      { verb: "get", group: "", resource: "nodes", name: undefined },
    ]);
    expect(asked).toContainEqual({ verb: "get", group: "", resource: "pods", subresource: "log" });
  });
});
