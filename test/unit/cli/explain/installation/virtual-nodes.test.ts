import { describe, expect, test } from "vitest";
import type { KubeNode, Stored } from "../../../../../src/api/kubernetes.ts";
import { kubeletFindings, staleNodeFindings } from "../../../../../src/cli/explain/installation/controller.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { limits, refusing, stored } from "./given.ts";

describe("a member", () => {
  const node = (unschedulable: boolean): Stored<KubeNode> => ({
    metadata: { name: "legation-west", ...stored, labels: { "legation.dev/cluster": "west" } },
    spec: { unschedulable },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });

  test("leaves no node behind", () => {
    expect(staleNodeFindings([node(false)], new Set(["west"]))).toEqual([]);
    expect(staleNodeFindings([node(false)], new Set())).toMatchObject([{ remedy: "legation unjoin west" }]);
  });
});

describe("a virtual node's kubelet API", () => {
  const node = {
    metadata: { name: "legation-west", ...stored },
    status: { daemonEndpoints: { kubeletEndpoint: { Port: 10250 } } },
  };
  const judge = async (raw: () => Promise<unknown>, of: typeof node | undefined = node) =>
    await kubeletFindings(fakeClient({ raw }), "west", of, limits);

  test.each([
    ["answers", async () => "ok", "OK"],
    ["is on the API server's own machine", refusing("BadRequest", "address not allowed"), "SKIP"],
    ["does not answer", refusing("ServerError", "error trying to reach service: dial tcp: refused"), "FAIL"],
    ["has a certificate that is not trusted", refusing("ServerError", "x509: certificate signed by unknown"), "FAIL"],
  ])("%s", async (_, raw, state) => {
    expect(await judge(raw)).toMatchObject([{ state }]);
  });

  test("is missing with its node, or without a port", async () => {
    expect(await kubeletFindings(fakeClient({}), "west", undefined, limits)).toMatchObject([{ state: "FAIL" }]);
    const without = { metadata: node.metadata };
    expect(await kubeletFindings(fakeClient({}), "west", without, limits)).toMatchObject([{ state: "WARN" }]);
  });
});
