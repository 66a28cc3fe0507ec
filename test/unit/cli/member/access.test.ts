import { describe, expect, test } from "vitest";
import { accessObjects } from "../../../../src/cli/member/access.ts";
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

  test("each host has names of its own", () => {
    expect(Object.values(objects).map(({ metadata }) => metadata.name)).toEqual([name, name, name]);
    const other = accessObjects(role, { ...account, hostId: "fedcba98-7654" });
    expect(other.user.metadata.name).toBe("legation-host-fedcba98");
  });

  test("its rights are the manifest's, and over itself nothing but to renew its token and to go", () => {
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

  test("the binding binds just that account to just that role", () => {
    expect(objects.binding).toMatchObject({
      roleRef: { kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name, namespace: "legation-system" }],
    });
  });

  test("people of the member see whose it is", () => {
    for (const { metadata } of Object.values(objects)) {
      expect(metadata).toMatchObject({
        labels: { "legation.dev/host": account.hostId, "legation.dev/cluster": "west" },
        annotations: { "legation.dev/host-name": "berlin" },
      });
    }
  });
});
