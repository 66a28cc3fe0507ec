import { describe, expect, test } from "vitest";
import { Discovery, readServed } from "../../../../src/cli/shared/discovery.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { discoveryDocument, type TypeServed } from "../../../support/builders/discovery.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const mesh = { group: "mesh.example.com" };
const TYPES: readonly TypeServed[] = [
  { plural: "pods", kind: "Pod" },
  { plural: "bindings", kind: "Binding", verbs: ["create"] },
  { plural: "views", kind: "View", verbs: ["list"] },
  { plural: "nodes", kind: "Node", namespaced: false },
  { group: "apps", plural: "deployments", kind: "Deployment" },
  { group: "metrics.k8s.io", version: "v1beta1", plural: "pods", kind: "PodMetrics" },
  { group: "external.metrics.k8s.io", version: "v1beta1", plural: "values", kind: "Value", isStale: true },
  { group: "down.example.com", plural: "things", kind: "Thing", isStale: true },
  { ...mesh, version: "v1", plural: "routes", kind: "Route" },
  { ...mesh, version: "v1beta1", plural: "routes", kind: "Route" },
  { ...mesh, version: "v1alpha3", plural: "routes", kind: "Route" },
  { ...mesh, version: "v1alpha3", plural: "filters", kind: "Filter" },
];

function server(types: readonly TypeServed[] = TYPES): { client: ClusterClient; asked: string[] } {
  const asked: string[] = [];
  const raw: ClusterClient["raw"] = async ({ path }) => {
    asked.push(path);
    return discoveryDocument(path, types);
  };
  return { client: fakeClient({ raw }), asked };
}

const { signal } = new AbortController();

describe("discovery", () => {
  test("finds a manifest's resource by its kind, with two requests for all", async () => {
    const { client, asked } = server();
    const discovery = new Discovery(client, signal);
    const deployment = { group: "apps", version: "v1", plural: "deployments", kind: "Deployment", namespaced: true };
    expect(await discovery.find("apps/v1", "Deployment")).toEqual(deployment);
    expect(await discovery.find("v1", "Node")).toMatchObject({ plural: "nodes", namespaced: false });
    expect(await discovery.find("apps/v1", "Unheard")).toBeUndefined();
    expect(asked).toEqual(["/api", "/apis"]);
  });

  test("asks again for a missing kind, which a CRD may add", async () => {
    const types = [...TYPES];
    const { client } = server(types);
    const discovery = new Discovery(client, signal);
    expect(await discovery.find("legation.dev/v1alpha1", "Cluster")).toBeUndefined();
    types.push({ group: "legation.dev", version: "v1alpha1", plural: "clusters", kind: "Cluster" });
    expect(await discovery.find("legation.dev/v1alpha1", "Cluster")).toMatchObject({ plural: "clusters" });
  });

  test("refuses a kind that the server does not serve", async () => {
    await expect(new Discovery(server().client, signal).get("apps/v2", "Deployment")).rejects.toMatchObject({
      exit: "refused",
      message: "fake: the API server does not serve Deployment in apps/v2",
    });
  });

  test("refuses an API server without aggregated discovery", async () => {
    const client = fakeClient({ raw: async () => ({ kind: "APIGroupList", groups: [] }) });
    await expect(new Discovery(client, signal).all()).rejects.toMatchObject({
      code: "BadAnswer",
      message: expect.stringContaining("Kubernetes 1.30 or newer sends one"),
    });
  });

  test("lists removable namespaced kinds and versions that do not answer, without metrics", async () => {
    const { types, stale } = await new Discovery(server().client, signal).removable();
    expect(types.map(({ resource }) => resource.plural)).toEqual(["pods", "deployments", "routes", "filters"]);
    expect(stale).toMatchObject([{ group: "down.example.com", version: "v1" }]);
  });

  test("lists each kind once, also one of another version of its group", async () => {
    const { types } = await new Discovery(server().client, signal).removable();
    expect(
      types
        .filter(({ resource: { group } }) => group === mesh.group)
        .map(({ resource: { plural, version } }) => `${plural} ${version}`),
    ).toEqual(["routes v1", "filters v1alpha3"]);
  });
});

test("leaves out types of a member whose names lead elsewhere or control the terminal", async () => {
  const apps = { group: "apps", plural: "deployments", kind: "Deployment" };
  const { client } = server([
    apps,
    { ...apps, plural: "../../../../../api/v1/secrets?x=" },
    { ...apps, kind: "Deployment\u001b[2J" },
    { ...apps, group: "apps/../.." },
  ]);
  const { types } = await readServed(client, {});
  expect(types.map(({ resource }) => resource)).toEqual([{ ...apps, version: "v1", namespaced: true }]);
});
