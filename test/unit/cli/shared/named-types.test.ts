import { describe, expect, test } from "vitest";
import type { Discovery } from "../../../../src/cli/shared/discovery.ts";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import { COPY_VERBS, findTypes, typeList } from "../../../../src/cli/shared/named-types.ts";

describe("a list of types", () => {
  test("is read as kubectl names types", () => {
    expect(typeList.parse(" jobs.batch,configmaps,certificates.cert-manager.io, ")).toEqual([
      { plural: "jobs", group: "batch" },
      { plural: "configmaps", group: "" },
      { plural: "certificates", group: "cert-manager.io" },
    ]);
  });

  test.each([
    ["*", /"\*" is a wildcard; name each type/],
    ["*.rbac.authorization.k8s.io", /is a wildcard/],
    ["roles.*", /is a wildcard/],
    ["jobs.batch/status", /write e.g. jobs.batch/],
    ["Job", /write e.g. jobs.batch/],
    ["jobs.", /write e.g. jobs.batch/],
  ])("refuses %j", (text, message) => {
    expect(
      typeList
        .safeParse(text)
        .error?.issues.map((issue) => issue.message)
        .join("; "),
    ).toMatch(message);
  });
});

describe("types that a server is asked for", () => {
  const served = (group: string, plural: string, verbs: readonly string[] = COPY_VERBS) => ({
    resource: { group, version: "v1", plural, kind: plural, namespaced: true },
    verbs,
    singular: "",
    shortNames: [],
    categories: [],
  });
  const all = [
    served("", "configmaps"),
    served("", "bindings", ["create"]),
    served("batch", "jobs"),
    served("rbac.authorization.k8s.io", "roles"),
  ];
  const find = (text: string): Promise<unknown> => {
    const discovery: Pick<Discovery, "all"> = { all: async () => ({ types: all, stale: [] }) };
    return findTypes(discovery, typeList.parse(text), { cluster: "west", verbs: COPY_VERBS });
  };

  test("are found by plural and group", async () => {
    expect(await find("jobs.batch,configmaps")).toMatchObject([{ group: "batch", version: "v1" }, { group: "" }]);
  });

  test.each([
    // A type that gives rights is named in full.
    ["roles", "west: roles: the API server does not serve this type", "write roles.rbac.authorization.k8s.io"],
    ["tasks.batch", "west: tasks.batch", "of batch it serves jobs.batch"],
    ["certificates.cert-manager.io", "west: certificates", "install its CustomResourceDefinition there first"],
    ["bindings", "west: bindings", "without list, watch, patch, delete"],
  ])("refuses %s, and says what to write", async (text, ...parts) => {
    const message = await find(text).then(
      () => "found",
      (error: unknown) => (error instanceof Failure ? `${error.message}; ${error.remedy}` : ""),
    );
    for (const part of parts) expect(message).toContain(part);
  });
});
