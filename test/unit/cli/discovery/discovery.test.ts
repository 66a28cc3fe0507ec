import { describe, expect, test } from "vitest";
import { Discovery } from "../../../../src/cli/discovery/discovery.ts";
import type { ClusterClient, RawRequest } from "../../../../src/kube/client.ts";
import { KubeError, type KubeErrorCode } from "../../../../src/kube/errors.ts";
import { fakeClient } from "../client.ts";

const list = (...resources: [name: string, kind: string, namespaced: boolean, verbs: string[]][]): object => ({
  resources: resources.map(([name, kind, namespaced, verbs]) => ({ name, kind, namespaced, verbs })),
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
      { name: "apps", preferredVersion: { version: "v1" } },
      { name: "metrics.k8s.io", preferredVersion: { version: "v1beta1" } },
      { name: "external.metrics.k8s.io", preferredVersion: { version: "v1beta1" } },
      { name: "down.example.com", preferredVersion: { version: "v1" } },
    ],
  },
  "/apis/apps/v1": list(["deployments", "Deployment", true, ["list", "delete"]]),
  "/apis/down.example.com/v1": "ServerError",
};

function server(answers: Record<string, object | KubeErrorCode> = ANSWERS): { client: ClusterClient; asked: string[] } {
  const asked: string[] = [];
  const raw = async ({ path }: RawRequest): Promise<unknown> => {
    asked.push(path);
    const answer = answers[path] ?? "NotFound";
    if (typeof answer === "object") return answer;
    throw new KubeError("no", { code: answer, cluster: "fake", verb: "get", resource: path });
  };
  return { client: fakeClient({ raw }), asked };
}

const { signal } = new AbortController();

describe("discovery", () => {
  test("finds a manifest's resource by its kind, and asks once for each group", async () => {
    const { client, asked } = server();
    const discovery = new Discovery(client, signal);
    const deployment = { group: "apps", version: "v1", plural: "deployments", kind: "Deployment", namespaced: true };
    expect(await discovery.find("apps/v1", "Deployment")).toEqual(deployment);
    expect(await discovery.find("apps/v1", "Unheard")).toBeUndefined();
    expect(asked).toEqual(["/apis/apps/v1"]);
  });

  test("never takes a subresource for the resource", async () => {
    expect(await new Discovery(server().client, signal).find("v1", "Pod")).toMatchObject({ plural: "pods" });
  });

  test("asks again for a group that was not there: a CRD may bring it", async () => {
    const answers = { ...ANSWERS };
    const { client } = server(answers);
    const discovery = new Discovery(client, signal);
    expect(await discovery.find("legation.dev/v1alpha1", "Cluster")).toBeUndefined();
    answers["/apis/legation.dev/v1alpha1"] = list(["clusters", "Cluster", false, ["list"]]);
    expect(await discovery.find("legation.dev/v1alpha1", "Cluster")).toMatchObject({ plural: "clusters" });
  });

  test("a kind that the server does not serve is refused in words", async () => {
    await expect(new Discovery(server().client, signal).get("apps/v2", "Deployment")).rejects.toMatchObject({
      exit: "refused",
      message: "fake: the API server does not serve Deployment in apps/v2",
    });
  });

  test("lists what is in namespaces and can be removed, and says which groups did not answer; metrics are not asked for", async () => {
    const { client, asked } = server();
    const { resources, unknown } = await new Discovery(client, signal).removable();
    expect(resources.map(({ plural }) => plural)).toEqual(["pods", "deployments"]);
    expect(unknown).toEqual(["down.example.com/v1"]);
    expect(asked.filter((path) => path.includes("metrics"))).toEqual([]);
  });
});
