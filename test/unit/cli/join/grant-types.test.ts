import { describe, expect, test } from "vitest";
import { typeObjects } from "../../../../src/cli/join/grant-access.ts";

const account = { hostId: "0123456789-abcdef", hostName: "berlin", cluster: "west" };

describe("a host's rights on types in a member", () => {
  const type = { group: "batch", version: "v1", plural: "jobs", kind: "Job", namespaced: true };
  const [gathering, binding, ofType] = typeObjects({ types: [type], definitions: false }, account);

  test("are gathered from roles for this host and for all", () => {
    expect(gathering?.aggregationRule).toEqual({
      clusterRoleSelectors: ["true", account.hostId].map((value) => ({
        matchLabels: { "legation.dev/aggregate-to-host": value },
      })),
    });
    expect(gathering).not.toHaveProperty("rules");
    expect(binding).toMatchObject({
      roleRef: { name: "legation-host-01234567-types" },
      subjects: [{ kind: "ServiceAccount", name: "legation-host-01234567", namespace: "legation-system" }],
    });
  });

  test("are those that copies need, in a role for each type", () => {
    expect(ofType).toMatchObject({
      metadata: {
        name: "legation-host-01234567-jobs.batch",
        labels: { "legation.dev/aggregate-to-host": account.hostId, "legation.dev/host": account.hostId },
      },
      rules: [{ apiGroups: ["batch"], resources: ["jobs"], verbs: ["list", "watch", "create", "patch", "delete"] }],
    });
  });
});

test("a host that gives a member claims may list the member's devices", () => {
  const group = "resource.k8s.io";
  const type = { group, version: "v1", plural: "resourceclaims", kind: "ResourceClaim", namespaced: true };
  const [, , ofClaims] = typeObjects({ types: [type], definitions: false }, account);
  const devices = { apiGroups: [group], resources: ["deviceclasses", "resourceslices"], verbs: ["list"] };
  expect(ofClaims?.rules).toContainEqual(devices);
});

test("a host's rights on a definition are in a role of their own, by name except for its creation", () => {
  const type = { group: "example.com", version: "v1", plural: "things", kind: "Thing", namespaced: true };
  const granted = { types: [type], definitions: true };
  const [, , , definition] = typeObjects(granted, account);
  const resource = { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"] };
  expect(definition).toMatchObject({
    metadata: { name: "legation-host-01234567-things.example.com-definition" },
    rules: [
      { ...resource, verbs: ["create"] },
      { ...resource, resourceNames: ["things.example.com"], verbs: ["list", "watch", "patch"] },
    ],
  });
});
