import { describe, expect, test } from "vitest";
import { Discovery } from "../../../../src/cli/shared/discovery.ts";
import type { ClusterClient, RawRequest } from "../../../../src/kube/client.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const list = (...resources: [name: string, kind: string, namespaced: boolean, verbs: string[]][]): object => ({
  resources: resources.map(([name, kind, namespaced, verbs]) => ({ name, kind, namespaced, verbs })),
});

const group = (name: string, preferred: string, ...others: string[]): object => ({
  name,
  preferredVersion: { version: preferred },
  versions: [...others, preferred].map((version) => ({ version })),
});

const ANSWERS: Record<string, object | KubeErrorCode> = {
  "/api/v1": list(
    ["pods", "Pod", true, ["list", "create", "delete"]],
    ["pods/status", "Pod", true, ["get", "patch"]],
    ["bindings", "Binding", true, ["create"]],
    ["views", "View", true, ["list"]],
    ["nodes", "Node", false, ["list", "delete"]],
  ),
  "/apis": {
    groups: [
      group("apps", "v1"),
      group("metrics.k8s.io", "v1beta1"),
      group("external.metrics.k8s.io", "v1beta1"),
      group("down.example.com", "v1"),
      group("mesh.example.com", "v1", "v1alpha3", "v1beta1"),
    ],
  },
  "/apis/apps/v1": list(["deployments", "Deployment", true, ["list", "delete"]]),
  "/apis/down.example.com/v1": "ServerError",
  "/apis/mesh.example.com/v1": list(["routes", "Route", true, ["list", "delete"]]),
  "/apis/mesh.example.com/v1beta1": list(["routes", "Route", true, ["list", "delete"]]),
  "/apis/mesh.example.com/v1alpha3": list(
    ["routes", "Route", true, ["list", "delete"]],
    ["filters", "Filter", true, ["list", "delete"]],
  ),
};

function server(answers: Record<string, object | KubeErrorCode> = ANSWERS): { client: ClusterClient; asked: string[] } {
  const asked: string[] = [];
  const raw = async ({ path }: RawRequest): Promise<unknown> => {
    asked.push(path);
    const answer = answers[path] ?? "NotFound";
    if (typeof answer === "object") return answer;
    throw kubeError(answer, "no", { cluster: "fake", verb: "get", resource: path });
  };
  return { client: fakeClient({ raw }), asked };
}

const { signal } = new AbortController();

describe("discovery", () => {
  test("finds a manifest's resource by its kind, with one request per group", async () => {
    const { client, asked } = server();
    const discovery = new Discovery(client, signal);
    const deployment = { group: "apps", version: "v1", plural: "deployments", kind: "Deployment", namespaced: true };
    expect(await discovery.find("apps/v1", "Deployment")).toEqual(deployment);
    expect(await discovery.find("apps/v1", "Unheard")).toBeUndefined();
    expect(asked).toEqual(["/apis/apps/v1"]);
  });

  test("does not mistake a subresource for the resource", async () => {
    expect(await new Discovery(server().client, signal).find("v1", "Pod")).toMatchObject({ plural: "pods" });
  });

  test("requests a missing group again, which a CRD may add", async () => {
    const answers = { ...ANSWERS };
    const { client } = server(answers);
    const discovery = new Discovery(client, signal);
    expect(await discovery.find("legation.dev/v1alpha1", "Cluster")).toBeUndefined();
    answers["/apis/legation.dev/v1alpha1"] = list(["clusters", "Cluster", false, ["list"]]);
    expect(await discovery.find("legation.dev/v1alpha1", "Cluster")).toMatchObject({ plural: "clusters" });
  });

  test("refuses a kind that the server does not serve", async () => {
    await expect(new Discovery(server().client, signal).get("apps/v2", "Deployment")).rejects.toMatchObject({
      exit: "refused",
      message: "fake: the API server does not serve Deployment in apps/v2",
    });
  });

  test("lists removable namespaced kinds and failed groups, without metrics", async () => {
    const { client, asked } = server();
    const { resources, unknown } = await new Discovery(client, signal).removable();
    expect(resources.map(({ plural }) => plural)).toEqual(["pods", "deployments", "routes", "filters"]);
    expect([...unknown]).toEqual([["down.example.com/v1", expect.objectContaining({ code: "ServerError" })]]);
    expect(asked.filter((path) => path.includes("metrics"))).toEqual([]);
  });

  test("lists each kind once, also one of another version of its group", async () => {
    const { resources } = await new Discovery(server().client, signal).removable();
    expect(
      resources
        .filter(({ group }) => group === "mesh.example.com")
        .map(({ plural, version }) => `${plural} ${version}`),
    ).toEqual(["routes v1", "filters v1alpha3"]);
  });
});
