import { expect, test } from "vitest";
import { readServedTypes } from "../../../../src/cli/multicluster/served-types.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

function discovery(group: string, resource: string, kind: string): object {
  const resources = [{ resource, responseKind: { kind }, scope: "Namespaced", verbs: ["get", "list"] }];
  return { metadata: { name: group }, versions: [{ version: "v1", resources }] };
}

test("leaves out types of a member whose names lead elsewhere or control the terminal", async () => {
  const items = [
    discovery("apps", "deployments", "Deployment"),
    discovery("apps", "../../../../../api/v1/secrets?x=", "Deployment"),
    discovery("apps", "deployments", "Deployment\u001b[2J"),
    discovery("apps/../..", "deployments", "Deployment"),
  ];
  const client = fakeClient({
    raw: async ({ path }) => ({ kind: "APIGroupDiscoveryList", items: path === "/apis" ? items : [] }),
  });
  const served = await readServedTypes(client, {});
  expect(served.map(({ resource }) => resource)).toEqual([
    { group: "apps", version: "v1", plural: "deployments", kind: "Deployment", namespaced: true },
  ]);
});
