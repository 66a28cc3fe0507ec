import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../../src/api/cluster.ts";
import type { Stored } from "../../../../../src/api/kubernetes.ts";
import { homeApiFindings, homeApiWay, refusedPods } from "../../../../../src/cli/explain/installation/home-api.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { refusing, signal, stored } from "./given.ts";

describe("a member", () => {
  const cluster = (status: Cluster["status"], fields: Partial<Cluster["spec"]> = {}): Stored<Cluster> => ({
    metadata: { name: "west", ...stored, annotations: { "legation.dev/member-uid": "one" } },
    spec: { credentialsSecret: { name: "member-west" }, ...fields },
    ...(status === undefined ? {} : { status }),
  });

  test("shows where its pods find the host", () => {
    const server = "https://10.0.0.1:6443";
    expect(homeApiWay(cluster(undefined, { homeAPI: { server } }), undefined)).toMatchObject({ state: "OK" });
    const broken = { server, certificateAuthorityData: "bm8=" };
    expect(homeApiWay(cluster(undefined, { homeAPI: broken }), undefined)).toMatchObject({ state: "FAIL" });
    expect(homeApiWay(cluster(undefined, { agent: { homeAPI: true } }), undefined)).toMatchObject({ state: "WARN" });
    expect(homeApiWay(cluster(undefined), server)).toMatchObject({ state: "OK" });
    expect(homeApiWay(cluster(undefined), undefined)).toMatchObject({ state: "SKIP" });
  });

  test("is warned of when pods there get no token", () => {
    const event = { reason: "NoToken", involvedObject: { namespace: "shop", name: "web-0" }, message: "quota" };
    expect(refusedPods([event])).toMatchObject([{ state: "WARN", what: expect.stringContaining("shop/web-0") }]);
    expect(refusedPods([])).toEqual([]);
  });

  test("notes pods there that have no way to the host, and when that matters", () => {
    const inNamespace = (namespace: string) => ({
      reason: "NoHomeAPI",
      involvedObject: { namespace, name: "web-0" },
      message: "no address is known",
    });
    const found = [inNamespace("shop"), inNamespace("pipelines"), inNamespace("shop")];
    expect(refusedPods(found)).toEqual([
      {
        state: "INFO",
        what: expect.stringMatching(
          /^pods of pipelines, shop .*only programs that call it need.*: no address is known$/,
        ),
        remedy: expect.stringMatching(/^none is needed where no program calls it/),
      },
    ]);
  });
});

describe("with few rights", () => {
  test("ways to the host's API server are told without events", async () => {
    const client = fakeClient({ find: async () => undefined, list: refusing("Forbidden", "no") });
    const homeAPI = { server: "https://10.0.0.1:6443" };
    const cluster = { metadata: { name: "west", ...stored }, spec: { credentialsSecret: { name: "s" }, homeAPI } };
    expect(await homeApiFindings(client, [cluster], signal)).toMatchObject([{ state: "OK" }, { state: "SKIP" }]);
  });
});
