import { describe, expect, test } from "vitest";
import { accessObjects } from "../../../../src/cli/join/grant-access.ts";
import type { Manifest } from "../../../../src/cli/shared/manifests.ts";

const rule = { apiGroups: [""], resources: ["pods"], verbs: ["create"] };
const role: Manifest = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: { name: "legation-host", labels: { a: "b" } },
  rules: [rule],
};
const account = { hostId: "0123456789-abcdef", hostName: "berlin", cluster: "west" };

describe("a host's access to a member", () => {
  const objects = accessObjects(role, account);
  const name = "legation-host-01234567";

  test("has names that differ for each host", () => {
    expect(Object.values(objects).map(({ metadata }) => metadata.name)).toEqual([name, name, name]);
    const other = accessObjects(role, { ...account, hostId: "fedcba98-7654" });
    expect(other.user.metadata.name).toBe("legation-host-fedcba98");
  });

  test("has the manifest's rights, and may renew its token and delete itself", () => {
    expect(objects.role.rules).toEqual([
      rule,
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["clusterroles"],
        resourceNames: [name],
        verbs: ["delete"],
      },
      { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: [name], verbs: ["create"] },
    ]);
  });

  test("binds the account to the role and nothing else", () => {
    expect(objects.binding).toMatchObject({
      roleRef: { kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name, namespace: "legation-system" }],
    });
  });

  test("names the host for the member's administrators", () => {
    for (const { metadata } of Object.values(objects)) {
      expect(metadata).toMatchObject({
        labels: { "legation.dev/host": account.hostId, "legation.dev/cluster": "west" },
        annotations: { "legation.dev/host-name": "berlin" },
      });
    }
  });
});
